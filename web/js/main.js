// The page: finds its parts and connects them.

import { Chart } from './chart.js';
import { Repl } from './repl.js';
import { Status } from './status.js';

const part = (id) => document.getElementById(id);

const status = new Status({
  line: part('status'),
  text: part('status-text'),
  bar: part('status-bar'),
  device: part('device'),
  detail: part('device-detail'),
  live: part('live'),
});

const chart = new Chart({
  plot: part('plot'),
  legend: part('legend'),
  empty: part('plot-empty'),
  log: part('plot-log'),
});

const repl = new Repl(
  {
    area: part('prompt'),
    completions: part('completions'),
    list: part('entries'),
    scroller: part('transcript'),
    stop: part('stop'),
  },
  status,
  (text) => chart.receive(text),
);

part('example').addEventListener('click', async () => {
  try {
    const response = await fetch(new URL('../examples/first.py', import.meta.url));
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    await repl.insertAndRun(await response.text());
  } catch (error) {
    status.say(`The example could not be loaded: ${error.message}`);
  }
});
part('run').addEventListener('click', () => repl.submit(part('prompt').value, true));
part('stop').addEventListener('click', () => repl.interrupt());
part('restart').addEventListener('click', () => repl.restart());
part('clear').addEventListener('click', () => repl.clear());
part('plot-clear').addEventListener('click', () => chart.clear());

repl.start();
