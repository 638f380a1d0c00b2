// Runs in one Python that come one after the other, each with a place of its own for what it prints.

/**
 * @typedef {object} Sink where the output of a run goes
 * @property {(source: string) => void} [begin] its turn has come
 * @property {(stream: string, text: string) => void} write
 * @property {(text: string) => void} display
 * @property {(text: string) => void} [plot]
 * @property {string} [chart] a name for that in which it plots, where there are several
 * @property {(answer: {status: string, text?: string, milliseconds?: number}) => void} [finish]
 */
export class Turns {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this._session = session;
    this._last = Promise.resolve(); // when the last run has ended
    this._sink = null;
    this._settle = null;
    this._await();
    const on = (type, handler) => session.addEventListener(type, ({ detail }) => handler(detail));
    on('state', (state) => state === 'loading' && this._await());
    on('ready', () => this._settle?.(null));
    on('failed', ({ message }) => this._settle?.({ status: 'failed', text: `Python did not start: ${message}\n` }));
    on('write', ({ stream, text }) => this._sink?.write(stream, text));
    on('display', ({ text }) => this._sink?.display(text));
    on('plot', ({ text }) => this._sink?.plot?.(text));
  }

  /** @returns {Promise<object | null>} null when Python is there; where it did not start, what every run is answered */
  get started() {
    return this._started;
  }

  /**
   * Runs Python when what was asked for before has ended.
   * @param {string | (() => string)} source or what gives it when its turn has come
   * @param {Sink | null} sink
   */
  run(source, sink = null) {
    const turn = this._last.then(async () => {
      const failed = await this._started;
      const text = typeof source === 'string' ? source : source();
      this._sink = sink;
      sink?.begin?.(text);
      const answer = failed ?? (await this._session.run(text, true, false, sink?.chart));
      sink?.finish?.(answer);
      this._sink = null;
      return answer;
    });
    this._last = turn.catch((error) => console.error(error));
    return turn;
  }

  _await() {
    if (this._settle) return; // it is waited for already
    this._started = new Promise((resolve) => {
      this._settle = (answer) => {
        this._settle = null;
        resolve(answer);
      };
    });
  }
}
