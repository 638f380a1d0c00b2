// A recorded run: shown while Python loads, until the live one takes its place.

import { decoded } from './values.js';

export class Recording {
  /**
   * @param {string} url of a list of what `show` sent
   * @param {(values: object) => void} show
   * @param {number} milliseconds between two pictures
   */
  constructor(url, show, milliseconds = 160) {
    this._stopped = false;
    this._play(url, show, milliseconds);
  }

  stop() {
    this._stopped = true;
    clearInterval(this._timer);
  }

  async _play(url, show, milliseconds) {
    const response = await fetch(url);
    if (!response.ok || this._stopped) return;
    const frames = decoded(await response.json());
    if (this._stopped) return;
    show(frames[0]);
    // Where motion is not wanted, the end of the run is the picture.
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
      frames.slice(1).forEach(show);
      return;
    }
    let next = 1;
    this._timer = setInterval(() => {
      if (next < frames.length) show(frames[next]);
      next += 1;
      if (next > frames.length + 12) {
        next = 1; // and from the start, after a pause
        show(frames[0]);
      }
    }, milliseconds);
  }
}
