// The border between the program and what stands beside it: moved with a pointer or the arrow keys, and remembered.

import { load, save } from './storage.js';

const KEY = 'tensorgrad.border';
const [LEAST, MOST] = [25, 75]; // percent of the width that the program gets
const STEPS = { ArrowLeft: -2, ArrowRight: 2, Home: -MOST, End: MOST };

export class Border {
  /**
   * @param {HTMLElement} handle a separator that can be focused
   * @param {HTMLElement} program whose width it sets, in a grid that reads `--program-width`
   */
  constructor(handle, program) {
    this._handle = handle;
    this._program = program;
    handle.setAttribute('aria-valuemin', LEAST);
    handle.setAttribute('aria-valuemax', MOST);
    handle.addEventListener('pointerdown', (event) => this._take(event));
    handle.addEventListener('pointermove', (event) => handle.hasPointerCapture(event.pointerId) && this._drag(event));
    handle.addEventListener('keydown', (event) => this._key(event));
    handle.addEventListener('dblclick', () => this._move(null));
    // Whatever moves it, a smaller window or the inspector too.
    new ResizeObserver(() => handle.setAttribute('aria-valuenow', Math.round(this._share))).observe(program);
    const kept = parseFloat(load(KEY));
    if (kept) this._move(kept);
  }

  get _share() {
    return (100 * this._program.offsetWidth) / this._width;
  }

  /** What the grid divides. */
  get _width() {
    const { clientWidth } = this._program.parentElement;
    const { paddingLeft, paddingRight } = getComputedStyle(this._program.parentElement);
    return clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  }

  _take(event) {
    if (event.button !== 0) return;
    this._handle.setPointerCapture(event.pointerId);
    this._offset = this._program.offsetWidth - event.clientX;
  }

  _drag({ clientX }) {
    this._move((100 * (clientX + this._offset)) / this._width);
  }

  _key(event) {
    const step = STEPS[event.key];
    if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this._move(this._share + step);
  }

  /** @param {number | null} share null is where the style sheet has it */
  _move(share) {
    const { style } = this._program.parentElement;
    if (share === null) style.removeProperty('--program-width');
    else style.setProperty('--program-width', `${Math.min(MOST, Math.max(LEAST, share)).toFixed(1)}%`);
    save(KEY, style.getPropertyValue('--program-width'));
  }
}
