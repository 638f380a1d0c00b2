// Lesson 3: a pad, what the network makes of the drawing, and its training.

import { colour, diverging, onScheme, ramp } from './colour.js';
import { Pad } from './digits_pad.js';
import { largest, paint, tile } from './grid.js';
import { latest } from './latest.js';
import { Lesson } from './lesson.js';
import { make, part } from './make.js';
import { Training } from './training.js';

const STEPS = 10; // a picture
const LOOK_EVERY = 5; // pictures between two looks at the test digits

const lesson = new Lesson('digits');
const pad = new Pad(part('pad'), drawn);
const [over, some] = ['over', 'some'].map(part);
const training = new Training(lesson, {
  cell: 'learn.py',
  look: 'await guess()\nshow(step=done, accuracy=await accuracy())',
  recorded: 'recorded/digits.json',
  milliseconds: 500,
  curves: ({ loss }) => ({ loss }),
  show,
  controls: [part('play'), over, some],
  words: { recorded: 'A recorded run, until Python is here. You can draw already.', live: 'Live: press Train, and draw.' },
  async play() {
    training.note('Each picture is one call of learn(10), below.');
    for (let pictures = 1; training.playing; pictures++) {
      const look = pictures % LOOK_EVERY ? '' : '\nshow(accuracy=await accuracy())';
      if (!(await run(`await learn(${STEPS})${look}`))) return;
    }
    await run('show(accuracy=await accuracy())');
  },
  ready: () => pad.empty || drawn(pad.pixels()),
});
const run = (source) => training.run(source);
const see = latest(async (pixels) => {
  await lesson.put('drawing', pixels);
  await run("await guess(np.fromfile('drawing', np.uint8))");
});

let last = {};

const rows = Array.from({ length: 10 }, (_, digit) => {
  const bar = make('span', { className: 'bar' });
  const value = make('span', { className: 'bar-value' }, '–');
  const row = make('li', {}, make('strong', {}, String(digit)), make('span', { className: 'bar-track' }, bar), value);
  part('bars').append(row);
  return { row, bar, value };
});
const squares = (id, count) => {
  const made = Array.from({ length: count }, () => make('canvas', { width: 1, height: 1 }));
  part(id).append(...made);
  return made;
};
const maps = { filters: squares('filters', 8), first: squares('first', 8), second: squares('second', 16) };

// What is shown

function show(values) {
  last = { ...last, ...values };
  if (values.drawing) paintAll(values);
  if (values.guess) showGuess(values.guess);
  if (values.step !== undefined) part('steps').textContent = String(values.step);
  if (values.loss !== undefined) part('loss').textContent = (values.loss ?? NaN).toFixed(3);
  if (values.accuracy !== undefined) part('accuracy').textContent = `${(values.accuracy * 100).toFixed(1)} %`;
  if (values.truth !== undefined) part('pad-caption').textContent = `A test digit: a ${values.truth}.`;
}

function showGuess(guess) {
  const best = guess.indexOf(Math.max(...guess));
  guess.forEach((sure, digit) => {
    const { row, bar, value } = rows[digit];
    bar.style.width = `${(100 * sure).toFixed(1)}%`;
    value.textContent = `${(100 * sure).toFixed(0)} %`;
    row.toggleAttribute('data-best', digit === best);
  });
  part('guess').textContent = String(best);
}

function paintAll({ drawing, filters, first, second }) {
  const colours = diverging();
  const grey = ramp(colour('--panel'), colour('--ink'), 255);
  paint(part('drawing'), tile(drawing, 0), 0, 0.5, 0.5, grey);
  maps.filters.forEach((canvas, i) => {
    const one = tile(filters, i);
    paint(canvas, one, 0, 0, largest(one, 0), colours);
  });
  for (const [canvases, pictures] of [[maps.first, first], [maps.second, second]]) {
    canvases.forEach((canvas, i) => {
      const one = tile(pictures, i);
      const half = largest(one, 0) / 2; // from 0 to the largest
      paint(canvas, one, 0, half, half, grey);
    });
  }
}

// What the reader does

function drawn(pixels) {
  part('pad-caption').textContent = 'Your drawing.';
  if (training.live) see(pixels); // when Python is there, it is shown what is on the pad
}

over.addEventListener('click', () => training.again(['model.py', 'learn.py']));
some.addEventListener('click', () => {
  pad.clear();
  run('i = int(np.random.default_rng().integers(len(test_images)))\nawait guess(255 * test_images[i])\nshow(truth=test_labels[i])');
});
part('clear').addEventListener('click', () => {
  pad.clear();
  drawn(pad.pixels());
  part('pad-caption').textContent = 'Draw a digit, as large as you like.';
});
onScheme(() => last.drawing && paintAll(last));

lesson.open();
