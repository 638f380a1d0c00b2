// What the lessons share in which a network is trained: its curves, the button that plays, the remark beside it, and a
// recorded run until Python is there.

import { Chart } from '../../js/chart.js';
import { part } from './make.js';
import { Recording } from './recording.js';

export class Training {
  /**
   * @param {import('./lesson.js').Lesson} lesson
   * @param {object} own
   * @param {string} own.cell whose functions are called
   * @param {string} own.recorded file of what `show` sent
   * @param {number} own.milliseconds between two of its pictures
   * @param {(values: object) => Record<string, number>} own.curves of such a picture, by name
   * @param {(values: object) => void} own.show
   * @param {HTMLElement[]} own.controls that work when Python is there
   * @param {{recorded: string, live: string}} own.words said until then, and then
   * @param {() => Promise<unknown>} own.play trains and draws while `playing` is set
   * @param {() => void} [own.ready] called when Python is there
   */
  constructor(lesson, own) {
    this._lesson = lesson;
    this._own = own;
    this._button = part('play');
    this._word = this._button.textContent;
    this.playing = false;
    this.live = false;
    this.chart = new Chart({ plot: part('plot'), legend: part('legend'), empty: part('plot-empty'), log: part('plot-log') });
    this._recording = new Recording(own.recorded, (values) => this._showRecorded(values), own.milliseconds);
    this._button.addEventListener('click', () => (this.playing ? this.pause() : this.start()));
    this._listen();
    this.note(own.words.recorded, 'recorded');
  }

  /** Runs code that calls the cell's functions. @returns {Promise<boolean>} whether it ended well */
  run(source) {
    return this._lesson.call(source, this._lesson.cell(this._own.cell));
  }

  note(text, kind = '') {
    part('note').textContent = text;
    part('note').dataset.kind = kind;
  }

  async start() {
    if (this.playing) return;
    this.playing = true;
    this._button.textContent = 'Pause';
    await this._own.play();
  }

  pause() {
    this.playing = false;
    this._button.textContent = this._word;
  }

  /** A new network, by the cells that make it. @param {string[]} cells */
  async again(cells) {
    this.pause();
    for (const name of cells) await this._lesson.cell(name).run();
    this.note('A new network, with random weights.');
  }

  stopRecording() {
    this._recording.stop();
  }

  _showRecorded(values) {
    this._own.show(values);
    if (values.step === 0) this.chart.clear();
    for (const [name, value] of Object.entries(this._own.curves(values))) {
      if (typeof value !== 'number') continue;
      this.chart.receive(JSON.stringify({ kind: 'points', series: { [name]: [[values.step, value]] } }));
    }
  }

  _listen() {
    const on = (type, handler) => this._lesson.addEventListener(type, ({ detail }) => handler(detail));
    on('show', (values) => {
      this.stopRecording();
      this._own.show(values);
    });
    on('plot', (message) => {
      this.stopRecording();
      this.chart.receive(message);
    });
    on('ready', () => {
      this.live = true;
      for (const control of this._own.controls) control.disabled = false;
      this.note(this._own.words.live);
      this._own.ready?.();
    });
    on('wrong', () => {
      this.pause();
      this.note('The code raised an error, or was stopped: it stands below its cell.', 'error');
    });
    on('lost', (what) => {
      this.pause();
      this.note(`${what}: the cells run again.`);
    });
  }
}
