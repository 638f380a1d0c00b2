// The page: finds its parts and connects them.

import { Border } from './border.js';
import { Chart } from './chart.js';
import { FileList } from './file_list.js';
import { takeFiles } from './files.js';
import { asMenu } from './menu.js';
import { isolate, keepOffline } from './offline.js';
import { Program } from './program.js';
import { Recorded } from './recorded.js';
import { Repl } from './repl.js';
import { Status } from './status.js';
import { mark } from './timing.js';

const part = (id) => document.getElementById(id);

new Border(part('border'), part('program-panel'));
asMenu(document.querySelector('.keys'));

const status = new Status({
  line: part('status'),
  text: part('status-text'),
  bar: part('status-bar'),
  device: part('device'),
  detail: part('device-detail'),
  live: part('live'),
  claim: part('claim'),
});

const chart = new Chart({
  plot: part('plot'),
  legend: part('legend'),
  empty: part('plot-empty'),
  log: part('plot-log'),
});

const recorded = new Recorded(
  {
    figure: part('recorded'),
    answer: part('recorded-answer'),
    points: part('recorded-points'),
    note: part('recorded-note'),
    pause: part('recorded-pause'),
  },
  chart,
);
recorded.start('./recorded/first.json');

let drawn = false; // whether Python has drawn a point
const repl = new Repl(
  {
    area: part('prompt'),
    completions: part('completions'),
    list: part('entries'),
    scroller: part('transcript'),
    stop: part('stop'),
  },
  status,
  (text) => {
    if (!chart.receive(text) || drawn) return;
    drawn = true;
    mark('first trained step');
  },
);

const program = new Program(
  {
    area: part('program'),
    completions: part('program-completions'),
    lines: part('program-lines'),
    note: part('program-note'),
    examples: part('examples'),
    share: part('share'),
    run: part('run-program'),
    own: part('own-program'),
    asItCame: part('as-it-came'),
  },
  {
    run: (source) => repl.submitProgram(source, `Program, ${source.trimEnd().split('\n').length} lines`),
    complete: (line, source) => repl.session.complete(line, source),
    describe: (expression, source) => repl.session.describe(expression, source),
    say: (text) => status.say(text),
  },
);

let inspector = null; // made when it is first opened
async function inspect() {
  inspector ??= import('./inspector.js').then(
    ({ Inspector }) =>
      new Inspector(part('inspector'), part('inspect'), {
        session: repl.session,
        select: (line, text) => program.select(line, text),
        say: (text) => status.say(text),
      }),
  );
  try {
    (await inspector).toggle();
  } catch (error) {
    inspector = null; // the next time tries again
    status.say(`The inspector could not be loaded: ${error.message}`);
  }
}

part('inspect').addEventListener('click', inspect);
addEventListener('keydown', (event) => {
  if (event.altKey && !event.ctrlKey && !event.metaKey && event.code === 'KeyI') {
    event.preventDefault();
    inspect();
  }
});
part('run').addEventListener('click', () => repl.submit(part('prompt').value, true));
part('stop').addEventListener('click', () => repl.interrupt());
part('restart').addEventListener('click', () => repl.restart());
part('clear').addEventListener('click', () => repl.clear());
const fileList = new FileList(part('files'), part('files-kept'), part('files-sum'));
takeFiles(part('add-files'), part('file-input'), (files) => repl.addFiles(files).then(() => fileList.show()));
part('plot-clear').addEventListener('click', () => {
  recorded.stop();
  chart.clear();
});

repl.session.addEventListener('state', ({ detail }) => {
  if (detail !== 'loading') program.code.upgrade();
});
repl.session.addEventListener(
  'started',
  () => {
    mark('program runs');
    recorded.stop();
  },
  { once: true },
);
repl.session.addEventListener('ready', async () => status.kept(await keepOffline()), { once: true });

program.start().then((first) => first || recorded.stop()); // "press Run for a live one" is about the first example
mark('page');
if (!(await isolate())) repl.start();
