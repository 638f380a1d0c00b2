// What the lessons share in which a network is trained: its curves, the button that plays, a recorded run until Python is
// there, and the weights, which the browser keeps for the next visit.

import { Chart } from '../../js/chart.js';
import { LESSON } from '../../js/kept.js';
import { part } from './make.js';
import { Recording } from './recording.js';

const KEEP_EVERY = 10_000; // ms while it trains

export class Training {
  /**
   * @param {import('./lesson.js').Lesson} lesson
   * @param {object} own
   * @param {string} own.cell whose functions are called
   * @param {string} own.look Python that shows everything, of weights that were kept
   * @param {string} own.recorded file of what `show` sent
   * @param {number} own.milliseconds between two of its pictures
   * @param {(values: object) => Record<string, number>} own.curves of such a picture, by name
   * @param {(values: object) => void} own.show
   * @param {HTMLElement[]} own.controls that work when Python is there
   * @param {{recorded: string, live: string}} own.words said until then, and then
   * @param {() => Promise<unknown>} own.play trains and draws while `playing` is set
   * @param {() => void} [own.ready] called when Python is there
   * @param {(() => void)} [own.kept] called when the weights were kept
   */
  constructor(lesson, own) {
    this._lesson = lesson;
    this._own = own;
    this._button = part('play');
    this._word = this._button.textContent;
    this.playing = false;
    this.live = false;
    this._steps = 0; // as shown
    this._resumes = true; // whether what is kept is of this network
    this._last = 'last time'; // when the weights were kept
    this._kept = { steps: 0, since: 0, told: false, off: false };
    this.chart = new Chart({ plot: part('plot'), legend: part('legend'), empty: part('plot-empty'), log: part('plot-log') });
    this._recording = new Recording(own.recorded, (values) => this._showRecorded(values), own.milliseconds);
    this._button.addEventListener('click', () => (this.playing ? this.pause() : this.start()));
    lesson.govern(own.controls);
    this._listen();
    this.note(own.words.recorded, 'recorded');
  }

  /** Runs code that calls the cell's functions. @returns {Promise<boolean>} whether it ended well */
  async run(source) {
    const good = await this._call(source);
    if (good && !(this.playing && performance.now() - this._kept.since < KEEP_EVERY)) await this._keep();
    return good;
  }

  note(text, kind = '') {
    this._lesson.note(text, kind);
  }

  async start() {
    if (this.playing) return;
    this.playing = true;
    this._kept.since = performance.now();
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
    await this.forget();
    for (const name of cells) {
      const cell = this._lesson.cell(name);
      const { status } = await cell.run();
      if (status !== 'ok') return this.note(`“${cell.title}” did not run to its end, so the network is the one of before.`, 'error');
    }
    return this.note('A new network, with random weights.');
  }

  /** What the browser keeps of this lesson; nothing is kept until there is another network. */
  forget() {
    this._kept.off = true;
    return this._keeping('forget');
  }

  stopRecording() {
    this._recording.stop();
  }

  _call(source) {
    return this._lesson.call(source, this._lesson.cell(this._own.cell));
  }

  /** Calls a function of `tensorgrad_page.keeping`. @returns {Promise<unknown>} what it gave, where it ended well */
  async _keeping(what) {
    let found;
    const take = ({ detail }) => (found = detail.kept ?? found);
    this._lesson.addEventListener('show', take);
    await this._call(`import tensorgrad_page.keeping\nshow(kept=await tensorgrad_page.keeping.${what}('${LESSON}${this._lesson.name}', globals()))`);
    this._lesson.removeEventListener('show', take);
    return found;
  }

  /** Has the browser keep the weights, where they are not those that it keeps. */
  async _keep() {
    if (this._kept.off || this._steps === this._kept.steps || this._steps === 0) return;
    Object.assign(this._kept, { steps: this._steps, since: performance.now() });
    const said = part('note').textContent;
    const kept = await this._keeping('keep');
    if (kept === false) {
      this._kept.off = true;
      this.note('This browser does not keep the weights, so the next visit begins anew.');
    }
    if (!kept || this._kept.off) return; // forgotten meanwhile
    this._own.kept?.();
    if (!this._kept.told && !this.playing && part('note').textContent === said) {
      this._kept.told = true;
      this.note('This browser keeps the weights for the next visit. Start over forgets them.');
    }
  }

  /** Goes on from what the browser keeps, and says so. */
  async _goOn() {
    if (!this._resumes) return;
    const found = await this._keeping('resume');
    if (found?.unfit) this.note('What was trained here last time does not fit this network and is left aside. It begins anew.');
    if (!found?.steps) return;
    this._kept.steps = found.steps;
    await this._call(this._own.look);
    const steps = found.steps === 1 ? '1 step' : `${found.steps} steps`;
    const anew = found.anew ? ' The optimizer was another one then, so it begins anew.' : '';
    this.note(`Trained ${steps} ${this._last}.${anew} ${this._word} goes on from there; Start over begins anew and forgets them.`);
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
      this._steps = values.step ?? this._steps;
      if (values.step === 0) Object.assign(this._kept, { steps: 0, off: false }); // another network
      this._own.show(values);
    });
    on('plot', (message) => {
      this.stopRecording();
      this.chart.receive(message);
    });
    on('ready', async () => {
      this.live = true;
      this.note(this._own.words.live);
      if (part('loss')) part('loss').textContent = '–'; // that of the recorded run
      await this._goOn();
      this._own.ready?.();
    });
    on('wrong', () => this.pause());
    on('lost', () => {
      this.pause();
      this.live = false;
      this._last = 'before';
      this._resumes = this._kept.steps > 0;
    });
  }
}
