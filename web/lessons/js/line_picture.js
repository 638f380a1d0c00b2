// The pictures of lesson 1: points with a line among them, and the loss as a surface over slope and height.

import { colour, onScheme, ramp } from './colour.js';
import { draw, set } from './make.js';

const WIDTH = 480;
const HEIGHT = 400;
const EDGE = 34;
const X = [-1.1, 1.1];
const Y = [-1.1, 1.1];
export const SLOPE = [-1.4, 2.4];
export const INTERCEPT = [-1.3, 1.3];
const BANDS = 14;

const scale = (from, to) => (value) => to[0] + ((value - from[0]) / (from[1] - from[0])) * (to[1] - to[0]);
const clamp = (value, [low, high]) => Math.min(high, Math.max(low, value));
const across = [EDGE, WIDTH - 10];
const down = [HEIGHT - EDGE, 10];

/** Where a pointer is, in the coordinates of a drawing's `viewBox`. */
function place(svg, event) {
  return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
}

function frame(svg, xs, ys, xName, yName) {
  set(svg, { viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  const x = scale(xs, across);
  const y = scale(ys, down);
  const grid = draw('g', { 'aria-hidden': 'true' });
  for (let tick = Math.ceil(xs[0]); tick <= xs[1]; tick++) {
    grid.append(draw('line', { x1: x(tick), x2: x(tick), y1: down[0], y2: down[1], class: tick ? 'grid' : 'axis' }));
    grid.append(draw('text', { x: x(tick), y: HEIGHT - 14, 'text-anchor': 'middle' }, String(tick)));
  }
  for (let tick = Math.ceil(ys[0]); tick <= ys[1]; tick++) {
    grid.append(draw('line', { x1: across[0], x2: across[1], y1: y(tick), y2: y(tick), class: tick ? 'grid' : 'axis' }));
    grid.append(draw('text', { x: EDGE - 8, y: y(tick) + 4, 'text-anchor': 'end' }, String(tick)));
  }
  grid.append(draw('text', { x: across[1], y: HEIGHT - 14, 'text-anchor': 'end', class: 'axis-name' }, xName));
  grid.append(draw('text', { x: EDGE + 6, y: 24, class: 'axis-name' }, yName));
  svg.append(grid);
  return { x, y, backX: scale(across, xs), backY: scale(down, ys) };
}

/** The points, which can be dragged, added and removed, and the line. */
export class Points {
  /** @param {SVGElement} svg @param {(points: number[][], done: boolean) => void} changed */
  constructor(svg, changed) {
    this._svg = svg;
    this._changed = changed;
    this.points = [];
    this._to = frame(svg, X, Y, 'x', 'y');
    this._residuals = draw('g', { 'aria-hidden': 'true' });
    this._line = draw('line', { class: 'fit' });
    this._dots = draw('g');
    svg.append(this._residuals, this._line, this._dots);
    svg.addEventListener('pointerdown', (event) => this._down(event));
    svg.addEventListener('pointermove', (event) => this._move(event));
    for (const type of ['pointerup', 'pointercancel']) svg.addEventListener(type, () => this._up());
    svg.addEventListener('keydown', (event) => this._key(event));
  }

  get dragging() {
    return this._dragged !== undefined;
  }

  setPoints(points) {
    this.points = points;
    while (this._dots.childElementCount > points.length) this._dots.lastChild.remove();
    while (this._dots.childElementCount < points.length) {
      this._dots.append(draw('circle', { r: 9, class: 'point', tabindex: 0, role: 'button' }));
    }
    this._draw();
  }

  setLine(slope, height) {
    this._fit = [slope, height];
    this._draw();
  }

  add(point = [0, 0]) {
    this.setPoints([...this.points, point]);
    this._changed(this.points, true);
    this._dots.lastChild.focus();
  }

  _draw() {
    const { x, y } = this._to;
    this.points.forEach(([px, py], i) => {
      const label = `Point ${i + 1} at ${px.toFixed(2)}, ${py.toFixed(2)}. Arrow keys move it, Delete removes it.`;
      set(this._dots.children[i], { cx: x(px), cy: y(py), 'aria-label': label });
    });
    if (!this._fit || !this._fit.every(Number.isFinite)) return;
    const at = (value) => clamp(this._fit[0] * value + this._fit[1], [-9, 9]);
    set(this._line, { x1: x(X[0]), y1: y(at(X[0])), x2: x(X[1]), y2: y(at(X[1])) });
    this._residuals.replaceChildren(
      ...this.points.map(([px, py]) => draw('line', { x1: x(px), x2: x(px), y1: y(py), y2: y(at(px)), class: 'residual' })),
    );
  }

  _at(event) {
    const { x, y } = place(this._svg, event);
    return [clamp(this._to.backX(x), X), clamp(this._to.backY(y), Y)].map((value) => Math.round(value * 100) / 100);
  }

  _down(event) {
    event.preventDefault();
    let index = [...this._dots.children].indexOf(event.target);
    if (index < 0) index = this.points.length;
    const points = [...this.points];
    points[index] = this._at(event);
    this.setPoints(points);
    this._dots.children[index].focus({ preventScroll: true });
    this._svg.setPointerCapture(event.pointerId);
    this._dragged = index;
    this._changed(points, false);
  }

  _move(event) {
    if (!this.dragging) return;
    const points = [...this.points];
    points[this._dragged] = this._at(event);
    this.setPoints(points);
    this._changed(points, false);
  }

  _up() {
    if (!this.dragging) return;
    this._dragged = undefined;
    this._changed(this.points, true);
  }

  _key(event) {
    const index = [...this._dots.children].indexOf(event.target);
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    const points = [...this.points];
    if (index < 0) return;
    if (step) {
      const by = event.shiftKey ? 0.2 : 0.05;
      points[index] = [clamp(points[index][0] + by * step[0], X), clamp(points[index][1] + by * step[1], Y)];
    } else if ((event.key === 'Delete' || event.key === 'Backspace') && points.length > 2) {
      points.splice(index, 1);
    } else return;
    event.preventDefault();
    this.setPoints(points);
    this._dots.children[Math.min(index, points.length - 1)].focus();
    this._changed(points, true);
  }
}

/** The loss over slope and height in bands, like heights on a map, and the walk down. */
export class Surface {
  /** @param {SVGElement} svg @param {HTMLCanvasElement} canvas @param {(slope: number, height: number) => void} picked */
  constructor(svg, canvas, picked) {
    this._canvas = canvas;
    this._to = frame(svg, SLOPE, INTERCEPT, 'slope', 'height');
    this._path = draw('polyline', { class: 'path' });
    this._trail = draw('g', { 'aria-hidden': 'true' });
    this._arrow = draw('line', { class: 'arrow' });
    this._best = draw('path', { class: 'best' });
    this._here = draw('circle', { r: 8, class: 'here' });
    const head = draw('marker', { id: 'arrow-head', viewBox: '0 0 8 8', refX: 5, refY: 4, markerWidth: 4, markerHeight: 4, orient: 'auto' });
    head.append(draw('path', { d: 'M0 0L8 4L0 8z', class: 'arrow-head' }));
    svg.append(draw('defs', {}, head), this._best, this._path, this._trail, this._arrow, this._here);
    svg.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      const { x, y } = place(svg, event);
      picked(clamp(this._to.backX(x), SLOPE), clamp(this._to.backY(y), INTERCEPT));
    });
    onScheme(() => this.setPoints(this._points ?? []));
  }

  /** The loss is a quadratic form of slope and height, with coefficients from six sums. */
  setPoints(points) {
    this._points = points;
    if (points.length < 2) return;
    const mean = (of) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
    const [x, y, xx, xy, yy] = [([a]) => a, ([, b]) => b, ([a]) => a * a, ([a, b]) => a * b, ([, b]) => b * b].map(mean);
    this.loss = (s, h) => s * s * xx + h * h + yy + 2 * (s * h * x - s * xy - h * y);
    const slope = (xy - x * y) / (xx - x * x || 1);
    this.best = [slope, y - slope * x];
    const [bx, by] = [this._to.x(slope), this._to.y(this.best[1])];
    set(this._best, { d: `M${bx - 7} ${by - 7}l14 14M${bx - 7} ${by + 7}l14 -14` });
    this._paint();
  }

  setPath(path, gradient, rate) {
    const { x, y } = this._to;
    const shown = path.filter((at) => at.every(Number.isFinite)).map(([s, h]) => [x(clamp(s, [-9, 9])), y(clamp(h, [-9, 9]))]);
    if (!shown.length) return;
    const here = shown.at(-1);
    set(this._path, { points: shown.map((at) => at.map((value) => value.toFixed(1)).join()).join(' ') });
    this._trail.replaceChildren(...shown.slice(-200).map(([cx, cy]) => draw('circle', { cx, cy, r: 3, class: 'trail' })));
    set(this._here, { cx: here[0], cy: here[1] });
    const next = gradient && [x(path.at(-1)[0] - rate * gradient[0]), y(path.at(-1)[1] - rate * gradient[1])];
    const long = next && Math.hypot(next[0] - here[0], next[1] - here[1]) > 6;
    this._arrow.setAttribute('visibility', long ? 'visible' : 'hidden');
    if (long) set(this._arrow, { x1: here[0], y1: here[1], x2: next[0], y2: next[1] });
  }

  _paint() {
    const [width, height] = [WIDTH, HEIGHT];
    Object.assign(this._canvas, { width, height });
    const context = this._canvas.getContext('2d');
    const colours = ramp(colour('--curve-1'), colour('--panel'), BANDS + 4).slice(4); // dark in the valley
    const picture = context.createImageData(width, height);
    const least = this.loss(...this.best);
    for (let row = 0; row < height; row++) {
      const h = this._to.backY(row);
      for (let column = 0; column < width; column++) {
        const above = this.loss(this._to.backX(column), h) - least;
        const band = clamp(Math.floor((Math.log2(above + 1e-3) + 10) * 1.1), [0, BANDS - 1]);
        picture.data.set(colours[band], (row * width + column) * 4);
      }
    }
    context.putImageData(picture, 0, 0);
  }
}
