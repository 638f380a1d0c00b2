// The curves that `plot(value)` feeds. uPlot draws them; their colours come from the page's style.

import { colourOf } from './colours.js';
import uPlot from '../vendor/uPlot.esm.js';

const MOST_POINTS = 20_000;
const COLOURS = 5; // --curve-1 ... in the style sheet
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 4]];

export class Chart {
  /** @param {{plot: HTMLElement, legend: HTMLElement, empty: HTMLElement, log: HTMLInputElement}} parts */
  constructor(parts) {
    this._parts = parts;
    this._series = new Map(); // name: {steps, values}
    this._old = false; // whether the curves are those of the run before
    this._highest = null; // of the axis, while a recording is shown
    this._chart = null;
    this._drawing = null;
    parts.log.addEventListener('change', () => this._rebuild());
    // The style sheet makes a transition of its background, which tells when light changes to dark or the other way.
    parts.plot.addEventListener('transitionend', ({ propertyName }) => propertyName === 'background-color' && this._rebuild());
    new ResizeObserver(() => this._chart?.setSize(this._size())).observe(parts.plot);
    this._rebuild();
  }

  /** @param {string} text a message of `tensorgrad_page.plotting` @returns {boolean} whether it has points */
  receive(text) {
    const message = JSON.parse(text);
    const points = message.kind === 'points';
    if (points) for (const [name, some] of Object.entries(message.series)) this._add(name, some);
    else if (message.kind === 'old') this._old = this._series.size > 0;
    else this.clear(message.name);
    this._drawSoon();
    return points;
  }

  /** Shows a recorded curve, until `clear()`: a value or null for each step; the axis reaches from 0 to `highest`. */
  preview(values, highest) {
    this._highest = highest;
    const steps = values.map((_, i) => i + 1);
    this._series = new Map(values.length ? [['loss, recorded', { steps, values }]] : []);
    this._drawSoon();
  }

  clear(name = null) {
    if (name === null) {
      this._series.clear();
      this._old = false;
      this._highest = null;
    }
    else this._series.delete(name);
    this._drawSoon();
  }

  _add(name, points) {
    if (!this._series.has(name)) this._series.set(name, { steps: [], values: [], count: 0 });
    const series = this._series.get(name);
    for (const [step, value] of points) {
      // A step that does not go forward starts the curve over.
      if (step <= series.steps.at(-1)) Object.assign(series, { steps: [], values: [], count: 0 });
      series.count += 1;
      series.steps.push(step);
      series.values.push(value);
    }
    if (series.steps.length > MOST_POINTS) {
      series.steps = series.steps.filter((_, i) => i % 2 === 0);
      series.values = series.values.filter((_, i) => i % 2 === 0);
    }
  }

  _drawSoon() {
    if (this._drawing !== null) return;
    const draw = () => {
      this._drawing = null;
      this._draw();
    };
    // A hidden tab gets no animation frames.
    this._drawing = document.hidden ? setTimeout(draw, 200) : requestAnimationFrame(draw);
  }

  _draw() {
    const names = [...this._series.keys(), this._highest].join('\n');
    if (names !== this._names) this._rebuild();
    else this._chart.setData(this._data());
    this._describe();
  }

  _data() {
    const tables = [...this._series.values()].map(({ steps, values }) => [steps, this._drawable(values)]);
    if (!tables.length) return [[0, 100], [null, null]];
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  /** A logarithmic axis has no place for zero and below. */
  _drawable(values) {
    return this._parts.log.checked ? values.map((value) => (value > 0 ? value : null)) : values;
  }

  _size() {
    const { clientWidth, clientHeight } = this._parts.plot;
    return { width: Math.max(clientWidth, 120), height: Math.max(clientHeight, 80) };
  }

  _rebuild() {
    this._chart?.destroy();
    const colour = (name) => colourOf(name, this._parts.plot);
    const font = `12px ${getComputedStyle(this._parts.plot).getPropertyValue('--font-ui')}`;
    const axis = { stroke: colour('--ink-dim'), font, grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
    const names = [...this._series.keys()];
    const options = {
      ...this._size(),
      legend: { show: false },
      cursor: { show: false },
      padding: [8, 24, 0, 0], // half of a long number under the last tick
      scales: {
        x: names.length ? { time: false } : { time: false, range: [0, 100] },
        y: scaleOf(names.length > 0, this._parts.log.checked, this._highest),
      },
      axes: [
        { ...axis, size: 28, space: 60 },
        { ...axis, size: 56, space: 32, values: (_, ticks) => ticks.map((tick) => (tick === null ? '' : shorter(tick))) },
      ],
      series: [{}, ...this._curves(names, colour)],
    };
    this._names = [...names, this._highest].join('\n');
    this._chart = new uPlot(options, this._data(), this._parts.plot);
    this._describe();
  }

  _curves(names, colour) {
    // uPlot needs one series to draw empty axes.
    const curves = names.length ? names : [''];
    return curves.map((name, i) => ({
      label: name,
      stroke: colour(`--curve-${(i % COLOURS) + 1}`),
      width: 2,
      dash: DASHES[i % DASHES.length],
      // A line needs two points: one that has no neighbour is drawn as a dot.
      points: { show: false, size: 6, fill: colour(`--curve-${(i % COLOURS) + 1}`), filter: alone },
    }));
  }

  /** The legend, and the same in words for those who do not see the curve. */
  _describe() {
    const { legend, plot, empty } = this._parts;
    empty.hidden = this._series.size > 0 || this._highest !== null;
    const entries = [...this._series.entries()];
    while (legend.childElementCount > entries.length) legend.lastElementChild.remove();
    const words = entries.map(([name, { steps, values, count = 0 }], i) => {
      // of a recording that is being played, the rest is null
      const at = this._highest === null ? values.length - 1 : Math.max(0, values.findLastIndex((value) => value !== null));
      const item = legend.children[i] ?? legend.appendChild(legendItem(i));
      const [label, value, step] = item.querySelectorAll('[data-part]');
      label.textContent = name;
      value.textContent = values[at] === null ? 'not finite' : values[at].toPrecision(4);
      step.textContent = this._old ? 'run before' : `step ${steps[at]}`;
      item.dataset.points = String(count);
      return `${name} is ${shorter(values[at])} at step ${steps[at]}`;
    });
    plot.classList.toggle('old', this._old);
    const whose = this._old ? 'Curves of the run before' : 'Curves';
    plot.setAttribute('aria-label', words.length ? `${whose}: ${words.join('; ')}` : 'Curves: none yet');
  }
}

/** Where a curve has a value and none on either side; steps that only other curves have are undefined. */
function alone(chart, index) {
  const values = chart.data[index];
  const own = [...values.keys()].filter((i) => values[i] !== undefined);
  const single = own.filter((at, i) => values[at] !== null && (values[own[i - 1]] ?? null) === null && (values[own[i + 1]] ?? null) === null);
  return single.length ? single : null;
}

/** Without points uPlot draws no axes; an empty frame from 0 to 1 shows what will be there. */
function scaleOf(filled, log, highest) {
  if (highest !== null && !log) return { range: [0, highest] };
  if (log) return filled ? { distr: 3 } : { distr: 3, range: [0.01, 1] };
  return filled ? {} : { range: [0, 1] };
}

function legendItem(i) {
  const item = document.createElement('li');
  const swatch = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  swatch.setAttribute('viewBox', '0 0 28 8');
  swatch.setAttribute('class', `swatch curve-${(i % COLOURS) + 1}`);
  swatch.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  line.setAttribute('d', 'M0 4h28');
  line.setAttribute('stroke-dasharray', DASHES[i % DASHES.length].join(' '));
  swatch.append(line);
  item.append(swatch);
  for (const part of ['name', 'value', 'step']) {
    const span = document.createElement('span');
    span.dataset.part = part;
    item.append(span);
  }
  return item;
}

function shorter(value) {
  if (value === null || value === undefined) return 'not finite';
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5)) return value.toExponential(0);
  return String(Number(value.toPrecision(4)));
}
