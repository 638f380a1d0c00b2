// Lesson 1: the pictures, the buttons, and the Python that they run.

import { latest } from './latest.js';
import { Lesson } from './lesson.js';
import { INTERCEPT, Points, SLOPE, Surface } from './line_picture.js';
import { part } from './make.js';
import { Recording } from './recording.js';

const PAUSE = 220; // ms between two steps, so that each is seen
const ARRIVED = 1e-3; // length of a gradient

const lesson = new Lesson('line');
const points = new Points(part('points'), pointsChanged);
const surface = new Surface(part('surface'), part('surface-colours'), pick);
const buttons = ['play', 'step', 'over', 'add'].map(part);
const [play, step, over, add] = buttons;
const sliders = { slope: part('slope'), height: part('height'), rate: part('rate') };

let path = [];
let last = {};
let playing = false;
let steps = 0;

function show(values) {
  if (values.x && !points.dragging) {
    points.setPoints(values.x.map((x, i) => [x, values.y[i]]));
    path = [];
  }
  if (values.x) surface.setPoints(values.x.map((x, i) => [x, values.y[i]]));
  if (values.slope === undefined) return;
  last = values;
  const at = [values.slope, values.height].map((value) => value ?? NaN);
  if (String(at) !== String(path.at(-1))) path.push(at);
  points.setLine(...at);
  surface.setPath(path, values.gradient, Number(sliders.rate.value));
  write(values);
}

function write({ slope, height, loss, gradient = [], by_hand: hand = [] }) {
  const best = surface.best ?? [];
  const rows = { line: [slope, height], best, hand, grad: gradient };
  for (const [row, numbers] of Object.entries(rows)) {
    ['slope', 'height'].forEach((name, i) => (part(`${row}-${name}`).textContent = fixed(numbers[i])));
  }
  part('loss').textContent = fixed(loss, 5);
  part('steps').textContent = String(steps);
  const same = gradient.length > 0 && gradient.every((value, i) => Math.abs(value - hand[i]) < 1e-3 + 1e-3 * Math.abs(value));
  part('grad-name').toggleAttribute('data-same', same);
  for (const [name, value] of [['slope', slope], ['height', height]]) {
    if (document.activeElement !== sliders[name]) sliders[name].value = value;
    part(`${name}-value`).textContent = fixed(value, 2);
  }
}

function fixed(value, digits = 4) {
  if (value === null || value === undefined) return '–';
  const text = Math.abs(value) < 1e4 ? value.toFixed(digits) : value.toExponential(1);
  return text.replace('-', '−');
}

const run = (source) => lesson.call(source, lesson.cell('descend.py'));
const send = latest(run);

function pointsChanged(all) {
  pause();
  surface.setPoints(all);
  const list = (i) => all.map((point) => Number(point[i].toFixed(2))).join(', ');
  const cell = lesson.cell('points.py');
  if (!cell) return;
  cell.code.text = cell.code.text
    .replace(/^x = .*$/m, `x = np.float32([${list(0)}])`)
    .replace(/^y = .*$/m, `y = np.float32([${list(1)}])`);
  path = path.slice(-1);
  steps = 0;
  if (!add.disabled) send(`${cell.code.text}\nawait look()`);
}

function pick(slope, height) {
  if (step.disabled) return;
  pause();
  path = [];
  steps = 0;
  points.setLine(slope, height);
  send(`slope, height = ${slope.toFixed(3)}, ${height.toFixed(3)}\nawait look()`);
}

async function descend() {
  steps += 1;
  return run('await descend()');
}

async function playOn() {
  while (playing) {
    const since = performance.now();
    if (!(await descend())) return;
    if (!playing) return;
    const far = last.gradient && Math.hypot(...last.gradient);
    if (!(far > ARRIVED)) {
      pause();
      lesson.note(Number.isFinite(far) ? `Arrived after ${steps} steps: the gradient is nearly zero.` : 'The walk has left the picture: the rate is too large.');
      lesson.say(part('note').textContent);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, PAUSE - (performance.now() - since))));
  }
}

function pause() {
  playing = false;
  play.textContent = 'Play';
}

play.addEventListener('click', () => {
  if (playing) return pause();
  playing = true;
  play.textContent = 'Pause';
  lesson.note('Each step is one call of descend(), below.');
  return playOn();
});
step.addEventListener('click', () => {
  pause();
  descend();
});
over.addEventListener('click', () => {
  pick(-0.6, 0.6);
  lesson.note('Back at the start.');
});
add.addEventListener('click', () => points.add([0, 0.5]));
for (const name of ['slope', 'height']) {
  sliders[name].addEventListener('input', () => pick(Number(sliders.slope.value), Number(sliders.height.value)));
}
[sliders.slope.min, sliders.slope.max] = SLOPE;
[sliders.height.min, sliders.height.max] = INTERCEPT;
sliders.rate.addEventListener('input', () => {
  part('rate-value').textContent = Number(sliders.rate.value).toFixed(2);
  surface.setPath(path, last.gradient, Number(sliders.rate.value));
  if (!step.disabled) send(`rate = ${sliders.rate.value}`);
});

const recording = new Recording('recorded/line.json', show);
lesson.addEventListener('show', ({ detail }) => {
  recording.stop();
  show(detail);
});
lesson.govern([...buttons, ...Object.values(sliders)]);
lesson.addEventListener('ready', () => {
  run(`rate = ${sliders.rate.value}`); // the cells that have run know nothing of the slider
  path = path.slice(-1);
  steps = 0;
  lesson.note('Live: press Step or Play, drag the points, click into the map.');
});
for (const type of ['wrong', 'lost']) lesson.addEventListener(type, pause);
lesson.note('A recorded run, until Python is here.', 'recorded');
lesson.open();
