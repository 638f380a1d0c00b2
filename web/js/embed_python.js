// The Python of the cells in somebody's page: one for all of them, loaded when the first is run, or one for a cell alone.

import { choose, download } from './files.js';
import { Session } from './session.js';
import { Turns } from './turns.js';

let common = null;

/** @returns {Python} the one that all cells share, or where `alone`, another */
export function pythonOf(alone) {
  return alone ? new Python() : (common ??= new Python());
}

class Python {
  constructor() {
    this.session = new Session();
    this._turns = new Turns(this.session);
    this._mustRestart = false;
    this.life = 0; // another number when what ran before is lost
    const on = (type, handler) => this.session.addEventListener(type, ({ detail }) => handler(detail));
    on('state', (state) => (this.life += state === 'crashed'));
    on('download', ({ name, bytes }) => download(name, bytes));
    on('choose', ({ accept }) =>
      choose(accept).then(
        (bytes) => this.session.chosen(bytes),
        (error) => this.session.chosen(null, error.message),
      ),
    );
  }

  /** @param {string} source @param {import('./turns.js').Sink} sink */
  run(source, sink) {
    this.session.wake();
    return this._turns.run(source, sink);
  }

  /**
   * Stops what runs, by a restart where nothing else does: at once in a page that is not cross-origin isolated and a busy
   * loop, else when asked once more.
   * @param {(text: string) => void} say
   */
  stop(say) {
    if (this._mustRestart) {
      this._restart(say);
      return;
    }
    const stuck = ({ detail: { canRestartOnly } }) => {
      if (canRestartOnly) return this._restart(say);
      this._mustRestart = true;
      return say('Python has not stopped yet: it stops when the call that it is in returns. Stop again restarts it.');
    };
    const ended = ({ detail }) => {
      if (detail === 'running') return;
      this._mustRestart = false;
      this.session.removeEventListener('stuck', stuck);
      this.session.removeEventListener('state', ended);
    };
    this.session.addEventListener('stuck', stuck);
    this.session.addEventListener('state', ended);
    this.session.interrupt();
  }

  /** Throws it away; another one starts with the next run. */
  end() {
    this.life += 1;
    this.session.end();
  }

  _restart(say) {
    say('Python was restarted to end this: the names of all cells that share it are gone.');
    this.end();
    this.session.start();
  }
}
