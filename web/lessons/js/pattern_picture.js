// The pictures of lesson 2: the answer all over the square, and the network with a small picture for each neuron.

import { colour, diverging, onScheme } from './colour.js';
import { grid, largest, paint } from './grid.js';
import { draw, make, set } from './make.js';

const EDGE = 6; // the square reaches from -6 to 6
const SIZE = 480;
const THICKEST = 6;

/** The square: colours for the answer, a line where it is undecided, and the points. */
export class Answer {
  /** @param {HTMLCanvasElement} canvas @param {HTMLInputElement} tests whether test points are shown */
  constructor(canvas, tests) {
    this._canvas = Object.assign(canvas, { width: SIZE * 2, height: SIZE * 2 });
    this._tests = tests;
    this._small = document.createElement('canvas');
    this._points = {};
    this._use();
    onScheme(() => this._use());
    tests.addEventListener('change', () => this._draw());
  }

  setPoints(values) {
    this._points = values;
    this._draw();
  }

  /** @param {{shape: number[], values: Float32Array}} picture @param {number} middle the undecided value */
  show(picture, channel, middle, scale) {
    this._shown = [picture, channel, middle, scale];
    this._draw();
  }

  _use() {
    this._colours = diverging();
    this._ink = ['--curve-2', '--curve-1', '--panel', '--ink'].map((name) => `rgb(${colour(name).slice(0, 3).join()})`);
    this._draw();
  }

  _draw() {
    const context = this._canvas.getContext('2d');
    context.setTransform(2, 0, 0, 2, 0, 0);
    context.fillStyle = this._ink[2];
    context.fillRect(0, 0, SIZE, SIZE);
    if (this._shown) {
      paint(this._small, ...this._shown, this._colours);
      context.globalAlpha = 0.75;
      context.imageSmoothingQuality = 'high';
      context.drawImage(this._small, 0, 0, SIZE, SIZE);
      context.globalAlpha = 1;
      this._contour(context, ...this._shown);
    }
    const { points = [], labels = [], test_points: others = [], test_labels: theirs = [] } = this._points;
    if (this._tests.checked) others.forEach((at, i) => this._mark(context, at, theirs[i], true));
    points.forEach((at, i) => this._mark(context, at, labels[i], false));
  }

  /** Class 0 is a disc, class 1 a diamond; test points are hollow. */
  _mark(context, [x, y], label, hollow) {
    const [cx, cy] = [((x + EDGE) / (2 * EDGE)) * SIZE, ((EDGE - y) / (2 * EDGE)) * SIZE];
    context.beginPath();
    if (label > 0.5) {
      context.moveTo(cx, cy - 6.5);
      for (const [dx, dy] of [[6.5, 0], [0, 6.5], [-6.5, 0]]) context.lineTo(cx + dx, cy + dy);
      context.closePath();
    } else {
      context.arc(cx, cy, 5, 0, 2 * Math.PI);
    }
    const own = this._ink[label > 0.5 ? 1 : 0];
    context.fillStyle = hollow ? this._ink[2] : own;
    context.strokeStyle = hollow ? own : this._ink[2];
    context.lineWidth = hollow ? 2 : 1.5;
    context.fill();
    context.stroke();
  }

  /** Where the picture crosses its middle: each cell of four values gives a piece of the line. */
  _contour(context, { shape, values }, channel, middle) {
    const [height, width, channels = 1] = shape;
    const at = (row, column) => values[(row * width + column) * channels + channel] - middle;
    const to = (column, row) => [((column + 0.5) / width) * SIZE, ((row + 0.5) / height) * SIZE];
    context.strokeStyle = this._ink[3];
    context.lineWidth = 2;
    context.beginPath();
    for (let row = 0; row + 1 < height; row++) {
      for (let column = 0; column + 1 < width; column++) {
        const [a, b, c, d] = [at(row, column), at(row, column + 1), at(row + 1, column + 1), at(row + 1, column)];
        const crossed = [];
        if (a > 0 !== b > 0) crossed.push(to(column + a / (a - b), row));
        if (b > 0 !== c > 0) crossed.push(to(column + 1, row + b / (b - c)));
        if (d > 0 !== c > 0) crossed.push(to(column + d / (d - c), row + 1));
        if (a > 0 !== d > 0) crossed.push(to(column, row + a / (a - d)));
        for (let i = 0; i + 1 < crossed.length; i += 2) {
          context.moveTo(...crossed[i]);
          context.lineTo(...crossed[i + 1]);
        }
      }
    }
    context.stroke();
  }
}

/** Columns of inputs and neurons, with a line for each weight. */
export class Network {
  /**
   * @param {HTMLElement} root
   * @param {(chosen: {layer: number, neuron: number} | null) => void} chosen a neuron that is pointed at
   */
  constructor(root, chosen) {
    this._root = root;
    this._chosen = chosen;
    this._lines = draw('svg', { class: 'weights', 'aria-hidden': 'true' });
    this._columns = make('div', { className: 'columns' });
    root.append(this._lines, this._columns);
    this._use();
    onScheme(() => this._use());
    new ResizeObserver(() => this._place()).observe(root);
  }

  /** @param {string[]} inputs names @param {number[]} sizes of the hidden layers */
  build(inputs, sizes) {
    const key = JSON.stringify([inputs, sizes]);
    if (key === this._key) return;
    this._key = key;
    this._columns.replaceChildren(
      make('div', { className: 'column' }, ...inputs.map((name) => make('span', { className: 'input' }, name))),
      ...sizes.map((size, layer) => make('div', { className: 'column' }, ...Array.from({ length: size }, (_, i) => this._neuron(layer, i)))),
      make('div', { className: 'column' }, make('span', { className: 'input' }, 'answer')),
    );
    this._weights = null;
    this._place();
  }

  show(neurons, weights) {
    this._neurons = neurons.map(grid);
    this._weights = weights.map(grid);
    this._paint();
    this._weigh();
  }

  /** The picture of a neuron. */
  picture({ layer, neuron }) {
    const shown = this._neurons?.[layer];
    return shown && neuron < shown.shape[2] ? [shown, neuron, 0, largest(shown, neuron)] : null;
  }

  _use() {
    this._colours = diverging();
    this._paint();
  }

  _neuron(layer, neuron) {
    const button = make('button', { type: 'button', className: 'neuron' }, make('canvas', { width: 1, height: 1 }));
    button.setAttribute('aria-label', `Layer ${layer + 1}, neuron ${neuron + 1}: show what it answers`);
    for (const type of ['pointerenter', 'focus']) button.addEventListener(type, () => this._chosen({ layer, neuron }));
    for (const type of ['pointerleave', 'blur']) button.addEventListener(type, () => this._chosen(null));
    return button;
  }

  _paint() {
    this._neurons?.forEach((picture, layer) => {
      const canvases = this._columns.children[layer + 1]?.querySelectorAll('canvas') ?? [];
      canvases.forEach((canvas, i) => i < picture.shape[2] && paint(canvas, picture, i, 0, largest(picture, i), this._colours));
    });
  }

  /** A line from each element of a column to each of the next. */
  _place() {
    const frame = this._root.getBoundingClientRect();
    set(this._lines, { viewBox: `0 0 ${frame.width} ${frame.height}` });
    const columns = [...this._columns.children].map((column) =>
      [...column.children].map((element) => {
        const { left, right, top, height } = element.getBoundingClientRect();
        return { left: left - frame.left, right: right - frame.left, y: top + height / 2 - frame.top };
      }),
    );
    this._edges = columns.slice(1).map((column, i) =>
      column.map((to) => columns[i].map((from) => {
        const half = (from.right + to.left) / 2;
        return draw('path', { d: `M${from.right} ${from.y}C${half} ${from.y} ${half} ${to.y} ${to.left} ${to.y}` });
      })),
    );
    this._lines.replaceChildren(...this._edges.flat(2));
    this._weigh();
  }

  /** Thickness for size; a negative weight is dashed. */
  _weigh() {
    this._weights?.forEach(({ shape, values }, layer) => {
      const most = Math.max(1, ...values.map(Math.abs));
      this._edges[layer]?.forEach((lines, to) => lines.forEach((line, from) => {
        const weight = to < shape[0] && from < shape[1] ? values[to * shape[1] + from] : 0;
        line.setAttribute('class', weight < 0 ? 'negative' : 'positive');
        line.setAttribute('stroke-width', (0.3 + (THICKEST * Math.abs(weight)) / most).toFixed(2));
      }));
    });
  }
}
