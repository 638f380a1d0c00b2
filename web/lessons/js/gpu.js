// Lesson 6: an expression at each stage of the compiler, with fusion and without, and what it costs.

import { showBytes } from '../../js/inspector_parts.js';
import { Groups } from './gpu_groups.js';
import { Stages } from './gpu_stages.js';
import { Bars, shownTime, Sizes } from './gpu_times.js';
import { Lesson } from './lesson.js';
import { part } from './make.js';
import { Recording } from './recording.js';

const EXPRESSION = 'relu.py'; // its cell holds the others too

const lesson = new Lesson('gpu');
const stages = new Stages();
const bars = new Bars(part('bars'));
const sizes = new Sizes(part('sizes'));
const groups = new Groups();
const controls = ['work', 'size', 'play', 'all', 'group-size'].map(part);
const [work, size, play, all, groupSize] = controls;
const fusion = part('fusion');

let told = null;
let times = null;
let live = false;
let busy = null; // what is measured: 'one' or 'all'
let looking = null; // 'now', or 'again' where something changed meanwhile

// What is shown

function show(values) {
  if (values.fusion !== undefined) fusion.checked = values.fusion;
  if (values.work) work.value = values.work;
  if (values.groups) groups.show(values.groups);
  if (values.ways) {
    told = values;
    times = null;
    if (live && !busy) lesson.note('Compiled both ways. Press Measure for the times.');
  }
  if (values.times) take(values.times);
  if (told && (values.ways || values.fusion !== undefined)) stages.show(told, way());
  if (told) write();
}

function take(found) {
  if (found.no_gpu) lesson.note('There is no GPU here, so nothing is timed; the kernels are those that a GPU would run.', 'error');
  if (!found.fused || found.n !== told?.n) return;
  times = found;
  sizes.add(found.n, found);
  const ratio = found.apart.clock / found.fused.clock;
  const untimed = found.fused.kernels.length ? '' : ' This browser’s GPU has no timestamps, so the kernels alone have no times.';
  lesson.note(`Fused, a run is ${ratio.toFixed(2)} times as fast by the clock: medians, measured by turns.${untimed}`);
  lesson.say(part('note').textContent);
}

const way = () => (fusion.checked ? 'fused' : 'apart');

function write() {
  for (const [name, { kernels, stored, operations, nbytes }] of Object.entries(told.ways)) {
    const { clock, kernels: seconds } = times?.[name] ?? {};
    part(`${name}-kernels`).textContent = String(kernels.length);
    part(`${name}-stored`).textContent = `${stored} of ${operations}`;
    part(`${name}-bytes`).textContent = showBytes(nbytes);
    part(`${name}-gpu`).textContent = seconds?.length ? shownTime(seconds.reduce((sum, one) => sum + one, 0)) : '–';
    part(`${name}-clock`).textContent = clock ? shownTime(clock) : '–';
    for (const row of ['kernels', 'stored', 'bytes', 'gpu', 'clock']) part(`${name}-${row}`).toggleAttribute('data-chosen', name === way());
  }
  bars.show(times, Object.fromEntries(Object.entries(told.ways).map(([name, { kernels }]) => [name, kernels])));
  if (times) stages.times(times[way()].kernels);
  if (!live) part('size-value').textContent = told.n.toLocaleString('en');
}

// What Python does

const run = (source) => lesson.call(source, lesson.cell(EXPRESSION));

/** Compiles the expression for the size; the latest of what changes faster than Python answers. */
async function look() {
  if (looking) {
    looking = 'again';
    return;
  }
  do {
    looking = 'now';
    await run(`n = ${2 ** Number(size.value)}\nawait look()`);
  } while (looking === 'again');
  looking = null;
}

async function measure() {
  lesson.note('Both are compiled for the GPU, then timed by turns …');
  return run('await measure()');
}

async function measureAll() {
  all.textContent = 'Stop';
  sizes.clear();
  for (let power = Number(size.min); power <= Number(size.max) && busy === 'all'; power += 2) {
    size.value = String(power);
    label();
    await look();
    if (!(await measure())) break;
  }
  all.textContent = 'All sizes';
}

async function occupied(what, action) {
  if (busy) return;
  busy = what;
  for (const control of [work, size, play]) control.disabled = true;
  all.disabled = what === 'one';
  await action();
  busy = null;
  for (const control of [work, size, play, all]) control.disabled = !live;
}

function label() {
  part('size-value').textContent = (2 ** Number(size.value)).toLocaleString('en');
}

/** Another text of the expression that ran well is compiled. */
function observed(root) {
  const made = new MutationObserver(() => {
    sizes.clear();
    if (live && root.dataset.state === 'ok') look();
  });
  made.observe(root, { attributes: true, attributeFilter: ['data-runs'] });
  return made;
}

work.addEventListener('change', async () => {
  const cell = lesson.cell(EXPRESSION);
  cell.set(await lesson.text(work.value));
  cell.run();
});
size.addEventListener('input', label);
size.addEventListener('change', look);
fusion.addEventListener('change', () => told && show({ fusion: fusion.checked }));
play.addEventListener('click', () => occupied('one', measure));
all.addEventListener('click', () => {
  if (busy === 'all') busy = 'stopping';
  else occupied('all', measureAll);
});
groupSize.addEventListener('change', () => run(`LANES = ${groupSize.value}\ngroups()`));

lesson.govern(controls);
const recording = new Recording('recorded/gpu.json', show, 3000);
let begun = false;
let observer = null; // of the expression's cell
lesson.addEventListener('show', ({ detail }) => {
  recording.stop();
  show(begun ? detail : { ...detail, work: EXPRESSION, fusion: true });
  begun = true;
});
lesson.addEventListener('ready', () => {
  live = true;
  if (observer) {
    run(`LANES = ${groupSize.value}\ngroups()`); // the cells that have run again know nothing of the controls
    look();
  }
  observer ??= observed(lesson.cell(EXPRESSION).root);
  label();
  lesson.note('Live: take an expression, turn fusion off and on, and measure.');
});
lesson.addEventListener('lost', () => (live = false));
lesson.note('A recorded run, until Python is here. Point at a line.', 'recorded');
lesson.open();
