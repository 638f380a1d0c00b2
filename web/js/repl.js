// Puts the prompt, the transcript and the session together.

import { shown } from './display.js';
import { Editor } from './editor.js';
import { choose, download, hint, showSize } from './files.js';
import { History } from './history.js';
import { keepFile } from './kept_files.js';
import { Kept } from './kept.js';
import { limitsOf } from './limits.js';
import { Session } from './session.js';
import { Transcript } from './transcript.js';

const CRASHED = 'Python has crashed. Restart starts a new one.';
const STREAMS = { out: 'out', error: 'error' };

export class Repl {
  /**
   * @param {object} parts elements: area, completions, list, scroller, stop
   * @param {import('./status.js').Status} status
   * @param {(text: string) => void} onPlot
   */
  constructor(parts, status, onPlot) {
    this._status = status;
    this._parts = parts;
    this.session = new Session({ files: true });
    this._history = new History();
    this._transcript = new Transcript(parts.list, parts.scroller);
    this._queued = []; // what was entered while Python loads
    this._kept = new Kept();
    this._editor = new Editor(parts.area, parts.completions, {
      history: this._history,
      submit: (source, force) => this.submit(source, force),
      complete: (line) => this.session.complete(line),
      say: (text) => status.say(text),
    });
    this._listen(onPlot);
    document.addEventListener('keydown', (event) => this._key(event));
  }

  start() {
    this.session.start();
    this._editor.focus();
  }

  /** Runs what the prompt holds; `force` runs a block that could still go on. */
  submit(source, force) {
    return this._submit({ source, force, title: null });
  }

  /** Runs a program that is shown elsewhere; its entry says `title`. Resolves to the outcome, where it ran. */
  submitProgram(source, title) {
    return this._submit({ source, force: true, title });
  }

  async _submit(input) {
    if (!input.source.trim()) return undefined;
    if (this.session.state === 'failed') {
      this._status.say('Python did not start. Restart tries again.');
    } else if (this.session.state === 'crashed') {
      this._say(CRASHED);
    } else if (this.session.state === 'running') {
      this._say('Python is busy. Ctrl+C stops it; what you typed stays here.');
    } else if (this.session.state === 'loading') {
      if (input.title !== null) this._drop(({ input: { title } }) => title !== null); // Run pressed again
      this._say('This runs as soon as Python is loaded.');
      return new Promise((resolve) => this._queued.push({ input, resolve }));
    } else {
      return this._run(input);
    }
    return undefined;
  }

  /** Puts files into Python's working folder. @param {File[]} files */
  async addFiles(files) {
    for (const file of files) {
      if (!this.session.loaded) {
        this._say(`${file.name} was not taken: Python is not there yet.`);
        continue;
      }
      try {
        const answer = await this.session.put(file.name, new Uint8Array(await file.arrayBuffer()));
        if (answer.status === 'restarted') return;
        if (answer.error) throw new Error(answer.error);
      } catch (error) {
        this._say(`${file.name} was not taken: ${error.message}`); // a folder, for one
        continue;
      }
      this._say(`${file.name}, ${showSize(file.size)}, is in the working folder: ${await hint(file)}`);
      await keepFile(file).catch((error) => this._say(`${file.name} is not kept for your next visit: ${error.message}.`));
    }
  }

  interrupt() {
    if (this.session.state !== 'running') return;
    if (this._mustRestart) this.restart('A busy loop cannot be stopped here in another way.');
    else this.session.interrupt();
  }

  restart(why = '') {
    this._drop(() => true);
    this.session.restart();
    this._transcript.note(`${why} Python restarted. Names are gone, and files that Python wrote; the history stays.`.trim());
    this._editor.focus();
  }

  /** Takes what waits for Python, and is meant, out of the queue. */
  _drop(meant) {
    this._queued.filter(meant).forEach(({ resolve }) => resolve(undefined));
    this._queued = this._queued.filter((one) => !meant(one));
  }

  clear() {
    this._transcript.clear();
    this._editor.focus();
  }

  async _run({ source, force, title }) {
    const text = source.replace(/\s+$/, '');
    const entry = title === null ? this._pendingEntry(text) : this._titledEntry(title);
    const answer = await this.session.run(force ? text : source, force, title !== null);
    this._mustRestart = false;
    if (answer.status === 'incomplete') {
      entry.drop();
      this._editor.newLine();
      return answer;
    }
    entry.show();
    if (answer.status === 'restarted') return answer;
    if (answer.text) this._transcript.write(answer.status === 'ok' ? 'value' : 'trace', answer.text);
    entry.finish(answer.milliseconds);
    this._tellKept();
    if (answer.hint) this._transcript.note(answer.hint);
    if (answer.status === 'crashed') this._say(CRASHED);
    if (answer.status === 'exit') this._transcript.note('Python goes on: there is nothing to exit to. Restart starts afresh.');
    if (answer.status === 'error') this._status.say('The input raised an error.');
    return answer;
  }

  _titledEntry(title) {
    const { finish } = this._transcript.begin(title, '▶');
    return { show: () => {}, finish };
  }

  /** The entry of an input is shown when it starts or is wrong; until then it may be incomplete and stays in the prompt. */
  _pendingEntry(text) {
    let entry = null;
    const show = () => {
      if (entry) return;
      entry = this._transcript.begin(text);
      this._history.add(text);
      this._editor.value = '';
      this._showEntry = null;
    };
    this._showEntry = show;
    return { show, drop: () => (this._showEntry = null), finish: (milliseconds) => entry.finish(milliseconds) };
  }

  _listen(onPlot) {
    const on = (type, handler) => this.session.addEventListener(type, ({ detail }) => handler(detail));
    on('progress', (detail) => this._status.progress(detail));
    on('device', ({ device }) => this._status.device(device));
    on('ready', ({ versions, suspends, files }) => {
      this._status.ready(versions);
      if (files.length && !this._told) this._transcript.note(`In the working folder, as you left them: ${files.join(', ')}.`);
      this._tellLimits(suspends);
      this._tellKept();
    });
    on('failed', ({ message }) => this._status.failed(message));
    on('plot', ({ text }) => onPlot(text));
    on('started', () => this._showEntry?.());
    on('write', ({ stream, text }) => this._transcript.write(STREAMS[stream], text));
    on('display', ({ text }) => this._transcript.show(shown(text)));
    on('download', ({ name, bytes }) => {
      download(name, bytes);
      this._say(`${name}, ${showSize(bytes.length)}, goes to your downloads.`);
    });
    on('choose', ({ accept }) =>
      choose(accept).then(
        (bytes) => this.session.chosen(bytes),
        (error) => this.session.chosen(null, error.message),
      ),
    );
    on('stuck', ({ canRestartOnly }) => this._stuck(canRestartOnly));
    on('state', (state) => this._changed(state));
  }

  _changed(state) {
    this._status.state(state);
    this._parts.stop.disabled = state !== 'running';
    const next = state === 'ready' && this._queued.shift();
    // Messages, and the outcome of the input before, may still be on their way into the transcript: run after them.
    if (next) setTimeout(() => next.resolve(this._run(next.input)));
  }

  /** Once, above what is run. */
  _tellLimits(suspends) {
    if (this._told) return;
    this._told = true;
    const found = { isolated: this.session.isolated, suspends, memory: navigator.deviceMemory };
    for (const remark of limitsOf(found)) this._transcript.note(remark);
  }

  /** What this browser keeps, when that is news: nothing is stored without a word. */
  async _tellKept() {
    for (const remark of await this._kept.news()) this._transcript.note(remark);
  }

  _stuck(canRestartOnly) {
    this._mustRestart = canRestartOnly;
    this._say(
      canRestartOnly
        ? 'Python is in a busy loop, and without cross-origin isolation only a restart ends it. Stop again restarts Python and loses its names.'
        : 'Python has not stopped yet. It stops when the call it is in returns; Restart ends it at once and loses its names.',
    );
  }

  _say(text) {
    this._transcript.note(text);
    this._status.say(text);
  }

  _key(event) {
    if (!event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const key = event.key.toLowerCase();
    if (key === 'c' && !this._hasSelection()) {
      event.preventDefault();
      if (this.session.state === 'running') this.interrupt();
      else if (event.target === this._parts.area) this._editor.value = '';
    } else if (key === 'l' && event.target === this._parts.area) {
      event.preventDefault();
      this.clear();
    }
  }

  _hasSelection() {
    const { selectionStart, selectionEnd } = document.activeElement ?? {}; // of a text area; undefined elsewhere
    return selectionStart !== selectionEnd || String(document.getSelection()) !== '';
  }
}
