// Lesson 2: the controls write a program; this page runs it, step by step.

import { loadObject, save } from '../../js/storage.js';
import { Lesson } from './lesson.js';
import { grid } from './grid.js';
import { make, part } from './make.js';
import { Answer, Network } from './pattern_picture.js';
import { DEFAULTS, FEATURES, program } from './pattern_program.js';
import { Training } from './training.js';

const CELL = 'program.py';
const SETTINGS = 'tensorgrad.pattern'; // of the network whose weights are kept
const NUMBERS = new Set(['noise', 'batch', 'depth', 'width', 'strength', 'rate', 'seed']);

const lesson = new Lesson('pattern');
const answer = new Answer(part('answer'), part('show-test'));
const network = new Network(part('network'), choose);
const settings = { ...DEFAULTS, ...loadObject(SETTINGS) };
const asRecorded = JSON.stringify(settings) === JSON.stringify(DEFAULTS);
const [step, over] = ['step', 'over'].map(part);
const training = new Training(lesson, {
  cell: CELL,
  look: 'await advance(0)',
  recorded: 'recorded/pattern.json',
  milliseconds: 200,
  curves: ({ train, test }) => ({ training: train.loss, test: test.loss }),
  show,
  controls: [part('play'), step, over],
  words: {
    recorded: `A recorded run${asRecorded ? '' : ' with other settings than yours'}, until Python is here.`,
    live: 'Live: press Play. Point at a neuron to see what it answers.',
  },
  play,
  ready,
  kept: () => save(SETTINGS, JSON.stringify(made)),
});
const run = (source) => training.run(source);

let made = { ...settings }; // those of the network that Python has
let latest = null;
let chosen = null; // the neuron that is pointed at
let rebuilding = null;
let speed = { since: 0, steps: 0, pictures: 0 };

// Controls

settings.features = [settings.features].flat().filter((name) => name in FEATURES);
if (!settings.features.length) settings.features = DEFAULTS.features;
for (const [name, [label]] of Object.entries(FEATURES)) {
  const box = make('input', { type: 'checkbox', name: 'feature', value: name, checked: settings.features.includes(name) });
  part('features').append(make('label', { className: 'check' }, box, label));
}

const controls = [...document.querySelectorAll('[data-setting]')];
for (const control of controls) {
  const name = control.dataset.setting;
  control.value = String(settings[name]);
  if (control.value !== String(settings[name])) control.value = String((settings[name] = DEFAULTS[name])); // kept by another version
  control.addEventListener('input', () => label(control));
  control.addEventListener('change', () => changed(control));
  label(control);
}
part('features').addEventListener('change', () => {
  const ticked = [...document.querySelectorAll('[name=feature]:checked')].map((box) => box.value);
  if (ticked.length) settings.features = ticked;
  else document.querySelector(`[name=feature][value=${settings.features[0]}]`).checked = true; // one at least
  rebuild();
});

function label(control) {
  const output = document.querySelector(`output[for=${control.id}]`);
  if (output) output.textContent = control.value;
}

function changed(control) {
  const name = control.dataset.setting;
  if (name === 'seed') control.value = String(Math.max(0, Math.round(Number(control.value) || 0)));
  settings[name] = NUMBERS.has(name) ? Number(control.value) : control.value;
  if (name === 'strength' && settings.regularisation === 'none') training.note('The strength counts as soon as L1 or L2 is chosen.');
  else if (name === 'rate' && training.live && !rebuilding) setRate();
  else rebuild();
}

/** Another learning rate goes on with the same program: nothing is compiled again. */
function setRate() {
  const cell = lesson.cell(CELL);
  cell.code.text = cell.code.text.replace(/optim\.Adam\([^)]*\)/, `optim.Adam(${settings.rate})`);
  training.note(`train.set_lr(${settings.rate}): it goes on, nothing was compiled.`);
  made.rate = settings.rate;
  run(`train.set_lr(${settings.rate})`);
}

/** Writes the program for what the controls say, and runs it. */
function rebuild() {
  lesson.cell(CELL).set(program(settings));
  network.build(settings.features.map((name) => FEATURES[name][0]), Array(settings.depth).fill(settings.width));
  if (training.live) restart();
}

/** Runs the program as it stands; where it was training, it trains again. */
async function restart() {
  const cell = lesson.cell(CELL);
  if (rebuilding) {
    rebuilding = 'again';
    return;
  }
  const playOnAfter = training.playing;
  training.pause();
  do {
    rebuilding = 'now';
    training.note('Compiling the new program…');
    const tried = { ...settings };
    const { lost, status } = await cell.run();
    if (lost) return void (rebuilding = null); // the cells run again
    if (status === 'ok') made = tried;
  } while (rebuilding === 'again');
  rebuilding = null;
  const good = cell.root.dataset.state === 'ok';
  training.note(good ? 'A new network, with random weights.' : 'The program raised an error: it stands below it.', good ? '' : 'error');
  if (good && playOnAfter) training.start();
}

/** The cells have run; a control that was changed meanwhile has written another program. */
function ready() {
  const cell = lesson.cell(CELL);
  made = { ...settings };
  if (!cell.edited && cell.ran !== cell.code.text) restart();
}

// Training

async function play() {
  training.note('');
  speed = { since: performance.now(), steps: 0, pictures: 0 };
  while (training.playing) {
    const steps = Number(part('per-picture').value);
    if (!(await run(`await advance(${steps})`))) return;
    speed.steps += steps;
    speed.pictures += 1;
    showSpeed();
    await picture();
  }
}

/** Until the next picture; a hidden tab gets none. */
function picture() {
  return new Promise((resolve) => (document.hidden ? setTimeout(resolve, 30) : requestAnimationFrame(resolve)));
}

function showSpeed() {
  const seconds = (performance.now() - speed.since) / 1000;
  if (seconds < 0.5) return;
  part('speed').textContent = `${Math.round(speed.steps / seconds)}`;
  part('pictures').textContent = (speed.pictures / seconds).toFixed(1);
  if (seconds > 3) speed = { since: performance.now(), steps: 0, pictures: 0 };
}

step.addEventListener('click', () => {
  training.pause();
  run('await advance(1)');
});
over.addEventListener('click', () => {
  save(SETTINGS, '');
  training.forget();
  restart();
});

// What is shown

function show(values) {
  if (values.points) answer.setPoints(values);
  if (!values.answer) return;
  latest = { ...values, answer: grid(values.answer) };
  const sizes = values.neurons.map((picture) => grid(picture).shape[2]);
  const inputs = grid(values.weights[0]).shape[1];
  const names = settings.features.map((name) => FEATURES[name][0]);
  network.build(names.length === inputs ? names : Array.from({ length: inputs }, (_, i) => `${i + 1}`), sizes);
  network.show(values.neurons, values.weights);
  showAnswer();
  part('steps').textContent = String(values.step);
  for (const set of ['train', 'test']) {
    part(`${set}-loss`).textContent = (values[set].loss ?? NaN).toFixed(3);
    part(`${set}-accuracy`).textContent = `${((values[set].accuracy ?? NaN) * 100).toFixed(1)} %`;
  }
}

function showAnswer() {
  const neuron = chosen && network.picture(chosen);
  if (neuron) answer.show(...neuron);
  else if (latest) answer.show(latest.answer, 0, 0.5, 0.5);
  part('answer-caption').textContent = neuron
    ? `What neuron ${chosen.neuron + 1} of layer ${chosen.layer + 1} answers; the line is where it is 0.`
    : 'What the network answers, all over the square; the line is where it is undecided.';
}

function choose(neuron) {
  chosen = neuron;
  showAnswer();
}

lesson.open();
lesson.cell(CELL).set(program(settings));
