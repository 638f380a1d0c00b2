// The status strip: what Python is doing, how far loading has come, and the device in use.

import { showTime } from './transcript.js';

const MB = 1e6;
const DEVICE_SIGNS = { webgpu: '●', software: '◐', numpy: '○' };

export class Status {
  /** @param {{line: HTMLElement, text: HTMLElement, bar: HTMLProgressElement, device: HTMLElement,
   *   detail: HTMLElement, live: HTMLElement, claim?: HTMLElement}} parts */
  constructor(parts) {
    this._parts = parts;
    this._timer = null;
    this._ready = '';
    this._kept = '';
    this._files = Object.assign(document.createElement('span'), { className: 'status-files' });
    parts.line.append(this._files);
  }

  /** @param {{loaded: number, total: number, parts: import('../worker/progress.js').Part[]}} progress */
  progress({ loaded, total, parts }) {
    const here = total > 0 && loaded >= total;
    const sum = total ? `${megabytes(loaded)} of ${megabytes(total)} MB` : `${megabytes(loaded)} MB`;
    this._show('loading', here ? `Starting Python: ${sum} are here` : `Loading: ${sum}`);
    this._files.textContent = parts.map(told).join(', ');
    if (total) {
      this._parts.bar.max = total;
      this._parts.bar.value = loaded;
    }
  }

  device({ kind, name, detail }) {
    this._parts.device.dataset.kind = kind;
    this._parts.device.textContent = `${DEVICE_SIGNS[kind]} ${name}`;
    this._parts.detail.textContent = detail;
    if (this._parts.claim) this._parts.claim.textContent = kind === 'webgpu' ? ', on your GPU' : '';
  }

  ready({ python, tensorgrad }) {
    this._ready = `Ready. Python ${python}, tensorgrad ${tensorgrad}`;
    this.say('Python is ready.');
  }

  /** Whether the site is there without a network from now on. */
  kept(kept) {
    this._kept = kept ? '. Works offline' : '';
    if (this._parts.line.dataset.state === 'ready') this._show('ready', this._ready + this._kept);
  }

  state(state) {
    clearInterval(this._timer);
    this._parts.bar.hidden = state !== 'loading';
    this._files.hidden = state !== 'loading';
    if (state === 'loading') {
      this._parts.bar.removeAttribute('value');
      this._files.textContent = '';
      this._show('loading', 'Loading Python');
    } else if (state === 'ready') {
      this._show('ready', this._ready + this._kept);
    } else if (state === 'crashed') {
      this._show('failed', 'Python has crashed');
    } else if (state === 'running') {
      const since = performance.now();
      // Most inputs are over before this says anything: no flicker.
      this._timer = setInterval(() => this._show('running', `Running, ${showTime(performance.now() - since)}`), 250);
    }
  }

  failed(message) {
    this._show('failed', `Python did not start: ${message}`);
    this.say('Python did not start.');
  }

  /** For screen readers. */
  say(text) {
    this._parts.live.textContent = text;
  }

  _show(state, text) {
    this._parts.line.dataset.state = state;
    this._parts.text.textContent = text;
  }
}

function megabytes(bytes) {
  return (bytes / MB).toFixed(1);
}

/** One part of what is loaded, in words. */
function told({ name, loaded, total }) {
  if (total && loaded >= total) return `${name} ✓`;
  return loaded ? `${name} ${megabytes(loaded)}${total ? ` of ${megabytes(total)}` : ''}` : name;
}
