// What was run and what came of it, oldest first.

import { QuotingBlock, TextBlock } from './text.js';

const MOST_ENTRIES = 200;
const MOST_SHOWN = 100; // pictures and tables of one input
const QUOTES = new Set(['error', 'trace']); // kinds of text that quote code
const NEAR_END = 40; // px

/** "3 ms", "1.24 s", "2 min 5 s" */
export function showTime(milliseconds) {
  if (milliseconds < 1) return '< 1 ms';
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(2)} s`;
  const seconds = Math.round(milliseconds / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function element(tag, className, text = '') {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** What scrolls by itself can be reached with the keyboard. */
function reach(box) {
  const larger = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
  if (larger && getComputedStyle(box).overflowX === 'auto') {
    box.tabIndex = 0;
    box.setAttribute('role', 'group');
    box.setAttribute('aria-label', 'Large output, scrolls');
  } else {
    for (const name of ['tabindex', 'role', 'aria-label']) box.removeAttribute(name);
  }
}

export class Transcript {
  /**
   * @param {HTMLElement} list holds the entries
   * @param {HTMLElement} scroller what scrolls
   */
  constructor(list, scroller) {
    this._list = list;
    this._scroller = scroller;
    this._body = null;
    this._block = null;
    this._pending = [];
    this._drawing = null;
    this._following = true;
    this._sizes = '';
    scroller.addEventListener('scroll', () => {
      // In a frame with a new layout this comes before the observer, which has to know how it was.
      if (this._sizes === this._measured()) this._following = this._atEnd();
    });
    const resized = new ResizeObserver(() => {
      list.querySelectorAll('pre, .shown-html').forEach(reach);
      this._scroll(this._following);
    });
    resized.observe(scroller);
    resized.observe(list);
  }

  /** Starts an entry for an input; output goes to it until the next. */
  begin(source, sign = '>>>') {
    this._draw();
    const entry = element('article', 'entry');
    const head = element('div', 'entry-head');
    const prompt = element('span', 'prompt', sign);
    prompt.setAttribute('aria-hidden', 'true');
    const time = element('span', 'entry-time');
    const code = element('pre', 'entry-source', source);
    head.append(prompt, code, time);
    this._body = element('div', 'entry-body');
    entry.append(head, this._body);
    this._list.append(entry);
    reach(code);
    this._trim();
    this._block = null;
    this._scroll(true);
    return {
      finish: (milliseconds) => {
        this._draw();
        time.textContent = showTime(milliseconds);
        time.title = 'Run time';
      },
    };
  }

  /** @param {'out' | 'error' | 'value' | 'trace'} kind */
  write(kind, text) {
    if (!text) return;
    this._pending.push([kind, text]);
    if (this._drawing !== null) return;
    // A hidden tab gets no animation frames; output must not pile up there.
    this._drawing = document.hidden
      ? setTimeout(() => this._draw(), 200)
      : requestAnimationFrame(() => this._draw());
  }

  /** Something else than text, between what was written before and after. */
  show(node) {
    const follow = this._atEnd();
    this._draw();
    this._bodyNow().append(node);
    const shown = this._body.querySelectorAll(':scope > :not(.entry-text)');
    if (shown.length > MOST_SHOWN) shown[0].remove();
    this._block = null;
    for (const box of [node, ...node.querySelectorAll('pre')]) reach(box);
    this._scroll(follow);
  }

  /** A remark of the page itself. */
  note(text, kind = 'note') {
    this._draw();
    this._list.append(element('p', `entry-note ${kind}`, text));
    this._trim();
    this._body = null;
    this._block = null;
    this._scroll(true);
  }

  clear() {
    this._pending = [];
    this._list.replaceChildren();
    this._body = null;
    this._block = null;
  }

  _draw() {
    if (this._drawing !== null) {
      cancelAnimationFrame(this._drawing);
      clearTimeout(this._drawing);
      this._drawing = null;
    }
    if (!this._pending.length) return;
    const follow = this._atEnd();
    const pending = this._pending;
    this._pending = [];
    for (let i = 0; i < pending.length; ) {
      const kind = pending[i][0];
      let text = '';
      while (i < pending.length && pending[i][0] === kind) text += pending[i++][1];
      const { text: block, pre } = this._blockOf(kind);
      block.write(text);
      // Several lines keep their columns and scroll sideways; one long line wraps, and so do the sentences of an error.
      pre.classList.toggle('columns', block.columns);
      reach(pre);
    }
    this._scroll(follow);
  }

  _bodyNow() {
    if (!this._body) {
      // Output of a task that outlived its input, or after the transcript was cleared.
      this._body = element('div', 'entry-body');
      this._list.append(this._body);
    }
    return this._body;
  }

  _blockOf(kind) {
    const body = this._bodyNow();
    if (this._block?.kind !== kind) {
      const pre = element('pre', `entry-text ${kind}`);
      body.append(pre);
      this._block = { kind, pre, text: QUOTES.has(kind) ? new QuotingBlock(pre) : new TextBlock(pre) };
    }
    return this._block;
  }

  _trim() {
    while (this._list.childElementCount > MOST_ENTRIES) this._list.firstElementChild.remove();
  }

  _atEnd() {
    const { scrollTop, scrollHeight, clientHeight } = this._scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR_END;
  }

  _measured() {
    return `${this._scroller.scrollHeight} ${this._scroller.clientHeight}`;
  }

  _scroll(follow) {
    if (follow) this._scroller.scrollTop = this._scroller.scrollHeight;
    this._following = follow;
    this._sizes = this._measured();
  }
}
