// Lesson 5: a hand that is moved over the plane, what it writes, and the training of what writes.

import { colour, onScheme, ramp } from './colour.js';
import { paint, tile } from './grid.js';
import { latest } from './latest.js';
import { Lesson } from './lesson.js';
import { make, part } from './make.js';
import { Plane } from './pictures_plane.js';
import { Training } from './training.js';

const STEPS = 10; // a picture
const ENDS = [3, 8]; // the digits that `learn.py` begins with

const lesson = new Lesson('pictures');
const plane = new Plane(part('plane'), part('plane-tiles'), part('marks'), (x, y) => {
  training.stopRecording();
  if (!training.live) return;
  asked = [x, y];
  move(`await at(${x.toFixed(3)}, ${y.toFixed(3)})`);
});
let asked = null; // where the reader has put the hand, until Python has been there
const [step, over, others, ...ends] = ['step', 'over', 'others', 'first', 'second'].map(part);
let last = { digit: 3 };

const ten = Array.from({ length: 10 }, (_, digit) => {
  const canvas = make('canvas', { width: 28, height: 28 });
  const reading = make('span', {}, String(digit));
  const button = make('button', { type: 'button', disabled: true }, canvas, reading);
  button.addEventListener('click', () => run(`await choose(${digit})`));
  part('ten').append(button);
  return { button, canvas, reading };
});
const training = new Training(lesson, {
  cell: 'learn.py',
  look: 'await look()',
  recorded: 'recorded/pictures.json',
  milliseconds: 500,
  curves: ({ loss }) => ({ loss }),
  show,
  controls: [part('play'), step, over, others, ...ends, ...ten.map(({ button }) => button)],
  words: { recorded: 'A recorded run, until Python is here.', live: 'Live: press Play, then drag the ring over the plane.' },
  async play() {
    training.note(`Each picture is one call of advance(${STEPS}), below.`);
    while (training.playing && (await run(`await advance(${STEPS})`)));
  },
  ready: () => ends.every(({ value }, i) => Number(value) === ENDS[i]) || between(), // the cells know nothing of the choice
});
const run = (source) => training.run(source);
const move = latest(run);
const samples = Array.from({ length: 20 }, () => {
  const canvas = make('canvas', { width: 28, height: 28 });
  const reading = make('span', {}, '–');
  part('samples').append(make('li', {}, canvas, reading));
  return { canvas, reading };
});
const way = Array.from({ length: 12 }, () => make('canvas', { width: 28, height: 28 }));
part('way').append(...way);
for (const [i, select] of ends.entries()) {
  select.append(...ten.map((_, digit) => make('option', { selected: digit === ENDS[i] }, String(digit))));
}

// What is shown

function show(values) {
  last = { ...last, ...values };
  plane.show(values);
  if (values.hand && isAsked(values.hand)) {
    asked = null;
    plane.setHand(values.hand);
  }
  drawAll(values);
  if (values.step !== undefined) part('steps').textContent = String(values.step);
  if (values.loss !== undefined) part('loss').textContent = (values.loss ?? NaN).toFixed(1);
  for (const name of ['recognised', 'sure']) {
    if (values[name] !== undefined) part(name).textContent = `${(100 * values[name]).toFixed(1)} %`;
  }
}

/** A hand that was on its way when the reader moved on is not gone back to. */
function isAsked(hand) {
  return !asked || hand.every((value, i) => Math.abs(value - asked[i]) < 0.001);
}

function drawAll(values) {
  const grey = ramp(colour('--sunken'), colour('--ink'), 255);
  const picture = (canvas, pictures, i) => paint(canvas, tile(pictures, i), 0, 0.5, 0.5, grey);
  if (values.written) ten.forEach(({ canvas }, digit) => picture(canvas, values.written, digit));
  if (values.written || values.digit !== undefined) showHand(picture);
  if (values.samples) {
    samples.forEach(({ canvas, reading }, i) => {
      picture(canvas, values.samples, i);
      const right = values.read[i] === i % 10;
      reading.textContent = right ? '✓' : `✗ ${values.read[i]}`;
      canvas.setAttribute('role', 'img');
      canvas.setAttribute('aria-label', `Asked for a ${i % 10}, read as ${values.read[i]}`);
    });
  }
  if (values.way) {
    way.forEach((canvas, i) => {
      const real = { 0: 0, 11: 1 }[i];
      if (real === undefined) picture(canvas, values.way, i - 1);
      else picture(canvas, values.ends, real);
    });
  }
}

/** The chosen digit large, and under each of the ten what is read. */
function showHand(picture) {
  const { written, chances, digit } = last;
  if (!written) return;
  picture(part('written'), written, digit);
  ten.forEach(({ button, reading }, i) => {
    const best = chances[i].indexOf(Math.max(...chances[i]));
    reading.textContent = best === i ? `${i} ✓` : `${i} ✗ ${best}`;
    button.setAttribute('aria-label', `${reading.textContent}: show the ${i}; it is read as ${best}`);
    button.setAttribute('aria-pressed', i === digit);
  });
  const best = chances[digit].indexOf(Math.max(...chances[digit]));
  part('reading').textContent = `A ${digit} in this hand. It is read as ${best}, ${(100 * chances[digit][best]).toFixed(0)} % sure.`;
}

// What the reader does

/** Two test digits of the chosen kinds. */
function between() {
  const [first, second] = ends.map((select) => {
    const fitting = last.kinds.flatMap((kind, i) => (kind === Number(select.value) ? [i] : []));
    return fitting[Math.floor(Math.random() * fitting.length)];
  });
  run(`await between(${first}, ${second})`);
}

step.addEventListener('click', () => {
  training.pause();
  run('await advance(1)');
});
over.addEventListener('click', () => training.again(['model.py', 'learn.py']));
others.addEventListener('click', between);
for (const select of ends) select.addEventListener('change', between);
onScheme(() => drawAll(last));

for (const type of ['wrong', 'lost']) lesson.addEventListener(type, () => (asked = null));
lesson.open();
