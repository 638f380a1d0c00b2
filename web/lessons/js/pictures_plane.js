// The plane of lesson 5: what is written at its places, where test digits lie, and the handle that is dragged over it.

import { colour, onScheme, ramp } from './colour.js';
import { paint, tile } from './grid.js';
import { draw, set } from './make.js';

const SIZE = 480;
const REACH = 3; // from -3 to 3, across and up
const ACROSS = 7; // pictures in a row
const CURVES = 5; // --curve-1 ... of the style sheet
const SCALE = 2; // pixels of the canvas to one of the drawing

const clamp = (value) => Math.max(-REACH, Math.min(REACH, value));
const toX = (x) => ((x + REACH) / (2 * REACH)) * SIZE;
const toY = (y) => ((REACH - y) / (2 * REACH)) * SIZE;

export class Plane {
  /**
   * @param {SVGElement} svg lies on the canvas and has the handle
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLInputElement} marks whether test digits are shown
   * @param {(x: number, y: number) => void} moved called while the handle is moved
   */
  constructor(svg, canvas, marks, moved) {
    this._svg = svg;
    this._canvas = Object.assign(canvas, { width: SIZE * SCALE, height: SIZE * SCALE });
    this._marks = marks;
    this._moved = moved;
    this._small = document.createElement('canvas');
    this._shown = {};
    this._handle = draw('circle', { r: 12, class: 'point', tabindex: 0, role: 'button' });
    set(svg, { viewBox: `0 0 ${SIZE} ${SIZE}` });
    svg.append(this._handle);
    svg.addEventListener('pointerdown', (event) => this._down(event));
    svg.addEventListener('pointermove', (event) => this._dragged && this._to(...this._at(event)));
    for (const type of ['pointerup', 'pointercancel']) svg.addEventListener(type, () => (this._dragged = false));
    svg.addEventListener('keydown', (event) => this._key(event));
    marks.addEventListener('change', () => this._draw());
    onScheme(() => this._draw());
    this.setHand([0, 0]);
    this._draw();
  }

  /** @param {{tiles?: object, digit?: number, places?: object, kinds?: number[]}} values those that are new */
  show(values) {
    Object.assign(this._shown, values);
    this._draw();
  }

  /** What Python says, unless the handle is somewhere else already. */
  setHand([x, y]) {
    if (this._dragged) return;
    this._hand = [x, y];
    const label = `The hand at ${x.toFixed(1)} across, ${y.toFixed(1)} up. Arrow keys move it.`;
    set(this._handle, { cx: toX(x), cy: toY(y), 'aria-label': label });
  }

  _to(x, y) {
    const dragged = this._dragged;
    this._dragged = false;
    this.setHand([clamp(x), clamp(y)]);
    this._dragged = dragged;
    this._moved(...this._hand);
  }

  _at(event) {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this._svg.getScreenCTM().inverse());
    return [(x / SIZE) * 2 * REACH - REACH, REACH - (y / SIZE) * 2 * REACH];
  }

  _down(event) {
    event.preventDefault();
    this._svg.setPointerCapture(event.pointerId);
    this._handle.focus({ preventScroll: true });
    this._dragged = true;
    this._to(...this._at(event));
  }

  _key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const by = event.shiftKey ? 0.5 : 0.1;
    this._to(this._hand[0] + by * step[0], this._hand[1] + by * step[1]);
  }

  _draw() {
    const context = this._canvas.getContext('2d');
    const [panel, ink] = ['--sunken', '--ink'].map(colour);
    context.setTransform(SCALE, 0, 0, SCALE, 0, 0);
    context.fillStyle = css(panel);
    context.fillRect(0, 0, SIZE, SIZE);
    const marked = this._marks.checked;
    if (this._shown.tiles) this._tiles(context, ramp(panel, ink, 255), marked ? 0.25 : 0.8);
    if (this._shown.places && marked) this._places(context);
  }

  _tiles(context, colours, strength) {
    const side = SIZE / ACROSS;
    context.globalAlpha = strength;
    context.imageSmoothingQuality = 'high';
    for (let i = 0; i < ACROSS * ACROSS; i++) {
      paint(this._small, tile(this._shown.tiles, i), 0, 0.5, 0.5, colours);
      context.drawImage(this._small, (i % ACROSS) * side, Math.floor(i / ACROSS) * side, side, side);
    }
    context.globalAlpha = 1;
  }

  /** Each test digit as its numeral; those of the chosen digit last, large. */
  _places(context) {
    const { places, kinds, digit } = this._shown;
    const curves = Array.from({ length: CURVES }, (_, i) => css(colour(`--curve-${i + 1}`)));
    const ink = css(colour('--ink'));
    Object.assign(context, { textAlign: 'center', textBaseline: 'middle' });
    for (const chosen of [false, true]) {
      context.font = chosen ? 'bold 17px sans-serif' : '12px sans-serif';
      kinds.forEach((kind, i) => {
        if ((kind === digit) !== chosen) return;
        context.fillStyle = chosen ? ink : curves[kind % CURVES];
        context.fillText(String(kind), toX(places.values[2 * i]), toY(places.values[2 * i + 1]));
      });
    }
  }
}

const css = (rgba) => `rgb(${rgba.slice(0, 3).join()})`;
