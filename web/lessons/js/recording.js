// A recorded run: shown while Python loads, until the live one takes its place. What moves by itself can be paused.

import { part } from './make.js';
import { decoded } from './values.js';

const REST = 12; // pictures that the end stays for, before it begins again

export class Recording {
  /**
   * @param {string} url of a list of what `show` sent
   * @param {(values: object) => void} show
   * @param {number} milliseconds between two pictures
   */
  constructor(url, show, milliseconds = 160) {
    this._show = show;
    this._milliseconds = milliseconds;
    this._next = 0; // picture
    this._button = part('pause-recording');
    this._button.addEventListener('click', () => (this._timer ? this._pause() : this._play()));
    this._open(url);
  }

  /** For good. */
  stop() {
    this._stopped = true;
    this._pause();
    if (document.activeElement === this._button) this._moveFocus();
    this._button.hidden = true;
  }

  /** To what the button stood in: the next Tab goes on from there. */
  _moveFocus() {
    const stage = this._button.closest('.stage');
    stage.tabIndex = -1;
    stage.focus({ preventScroll: true });
  }

  async _open(url) {
    const response = await fetch(url);
    if (!response.ok || this._stopped) return;
    this._pictures = decoded(await response.json());
    if (this._stopped) return;
    this._button.hidden = false;
    // Where motion is not wanted, the end of the run is the picture.
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this._pictures.forEach(this._show);
      this._next = this._pictures.length + REST;
      this._pause();
    } else {
      this._step();
      this._play();
    }
  }

  _play() {
    this._timer = setInterval(() => this._step(), this._milliseconds);
    this._button.firstChild.data = 'Pause';
  }

  _pause() {
    clearInterval(this._timer);
    this._timer = null;
    this._button.firstChild.data = 'Play';
  }

  _step() {
    if (this._next >= this._pictures.length + REST) this._next = 0;
    if (this._next < this._pictures.length) this._show(this._pictures[this._next]);
    this._next += 1;
  }
}
