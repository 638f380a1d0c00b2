// What was typed before, kept in this browser across reloads.

import { load, save } from './storage.js';

const KEY = 'tensorgrad.history';
const MOST = 300;

export class History {
  constructor() {
    this._entries = this._load();
    this._at = this._entries.length;
    this._draft = '';
  }

  add(source) {
    if (source.trim() && this._entries.at(-1) !== source) {
      this._entries.push(source);
      this._entries = this._entries.slice(-MOST);
      save(KEY, JSON.stringify(this._entries));
    }
    this._at = this._entries.length;
    this._draft = '';
  }

  /** The entry before (step -1) or after (step 1) the one shown, or null at either end. */
  move(step, current) {
    const to = this._at + step;
    if (to < 0 || to > this._entries.length) return null;
    if (this._at === this._entries.length) this._draft = current;
    this._at = to;
    return to === this._entries.length ? this._draft : this._entries[to];
  }

  _load() {
    try {
      const stored = JSON.parse(load(KEY) ?? '[]');
      return Array.isArray(stored) ? stored.filter((entry) => typeof entry === 'string') : [];
    } catch {
      return [];
    }
  }
}
