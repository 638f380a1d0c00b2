// Lesson 4: a transformer is trained on names; its chances, its attention, and what it invents.

import { latest } from './latest.js';
import { Lesson } from './lesson.js';
import { make, part } from './make.js';
import { Attention } from './names_attention.js';
import { Chances } from './names_letters.js';
import { Training } from './training.js';

const STEPS = 10; // a picture
const TEST_EVERY = 3; // pictures
const ROWS = 6; // of invented names
const LONGEST = 13;

const lesson = new Lesson('names');
const chances = new Chances({ list: part('chances'), likely: part('likely'), undecided: part('undecided') });
const attention = new Attention({ heads: part('heads'), map: part('map'), caption: part('map-caption') });
const [step, over, letter, finish, beginning, temperature] =
  ['step', 'over', 'letter', 'finish', 'beginning', 'temperature'].map(part);
const training = new Training(lesson, {
  cell: 'learn.py',
  look: 'await look()\nawait test()',
  recorded: 'recorded/names.json',
  milliseconds: 700,
  curves: ({ loss, test, bigrams }) => ({ training: loss, test, bigrams }),
  show,
  controls: [part('play'), step, over, letter, finish, beginning],
  words: {
    recorded: 'A recorded run, until Python is here. Temperature works already.',
    live: 'Live: press Train, and type the beginning of a name.',
  },
  async play() {
    training.note('Each picture is one call of learn(10), below.');
    for (let pictures = 1; training.playing; pictures++) {
      const test = pictures % TEST_EVERY ? '' : '\nawait test()';
      if (!(await run(`await learn(${STEPS})${test}`))) return;
    }
    await run('await test()');
  },
  ready() {
    setTemperature();
    look();
  },
});
const run = (source) => training.run(source);
const see = latest((text) => run(`await look('${text}')`));

let tested = []; // what it invented at some steps
let drawing = Promise.resolve(); // until the last letter that was asked for is drawn
let numbers = null;

const rows = Array.from({ length: ROWS }, () => {
  const cells = [make('th', { scope: 'row' }, '–'), make('td'), make('td')];
  cells[2].append(make('span', { className: 'some-names' }));
  part('invented').append(make('tr', {}, ...cells));
  return cells;
});
part('finished').append(...Array.from({ length: 8 }, () => make('li', {}, '\u00a0')));

// What is shown

function show(values) {
  if (values.step !== undefined) part('steps').textContent = String(values.step);
  if (values.step === 0) part('loss').textContent = '–'; // a new run
  for (const name of ['loss', 'test', 'bigrams']) {
    if (values[name] !== undefined) part(name).textContent = (values[name] ?? NaN).toFixed(3);
  }
  if (values.numbers) {
    numbers = values.numbers.map((number) => number ?? NaN);
    attention.show(`.${values.beginning}`, values.attention);
    showChances();
  }
  if (values.invented) showInvented(values);
  if (values.finished) values.finished.forEach((name, i) => (part('finished').children[i].textContent = name));
}

function showChances() {
  const degree = Number(temperature.value);
  part('temperature-value').textContent = degree.toFixed(1);
  if (numbers) chances.show(numbers, degree);
}

/** From the first step to the latest, the further back the fewer. */
function showInvented({ step: at, test, invented }) {
  tested = [...tested.filter((old) => old.step < at), { step: at, test, invented }];
  while (tested.length > ROWS) {
    const gaps = tested.slice(1, -1).map((_, i) => tested[i + 2].step / Math.max(1, tested[i].step));
    tested.splice(1 + gaps.indexOf(Math.min(...gaps)), 1);
  }
  rows.forEach(([stepCell, testCell, names], i) => {
    const found = tested[i];
    stepCell.textContent = found ? String(found.step) : '–';
    testCell.textContent = found ? (found.test ?? NaN).toFixed(3) : '';
    names.firstChild.textContent = found ? found.invented.map((name) => name || '(nothing)').join(', ') : '';
  });
}

// What the reader does

const look = () => see(beginning.value);

/** A letter by the chances that are shown, and then the chances after it. */
async function drawLetter() {
  const drawn = chances.draw();
  if (drawn === '.') return training.note(`The point was drawn: the name is “${beginning.value}”.`);
  if (beginning.value.length === LONGEST) return training.note(`It has room for ${LONGEST} letters.`);
  beginning.value += drawn;
  training.note(`“${drawn}” was drawn.`);
  return look();
}

step.addEventListener('click', () => {
  training.pause();
  run('await learn(1)\nawait test()');
});
over.addEventListener('click', async () => {
  await training.again(['model.py', 'learn.py']);
  setTemperature();
  look();
});
beginning.addEventListener('input', () => {
  const written = beginning.value.toLowerCase();
  const known = written.replace(/[^a-z]/g, '');
  if (known !== beginning.value) beginning.value = known;
  training.note(known === written ? '' : 'The names that it learns from have the letters a to z only, and no spaces.');
  look();
});
temperature.addEventListener('input', showChances);
temperature.addEventListener('change', setTemperature);
letter.addEventListener('click', () => (drawing = drawing.then(drawLetter)));
finish.addEventListener('click', () => run(`show(finished=await invent(8, '${beginning.value}'))`));

function setTemperature() {
  if (!finish.disabled) run(`temperature = ${Number(temperature.value)}`);
}

lesson.open();
