// The program in CodeMirror. Loaded when Python is there or the person turns to the program, so that it delays neither.

import {
  acceptCompletion, autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, closeCompletion, currentCompletions,
  defaultKeymap, drawSelection, EditorState, EditorView, highlightActiveLine, history, historyKeymap, indentLess, indentMore,
  indentOnInput, indentUnit, keymap, lineNumbers, localCompletionSource, moveCompletionSelection, Prec, python, search,
  searchKeymap, startCompletion,
} from '../vendor/codemirror.js';
import { before, completeWith } from './code_completion.js';
import { docs, hideDocs, showDocs } from './code_docs.js';
import { markLine, wrongLine } from './code_mark.js';
import { theme } from './code_theme.js';
import { commonPrefix } from './completion.js';
import { cleanPaste, indentAfter, STEP } from './indent.js';

const UNTIL_LEFT = 3_600_000; // ms that Tab goes on leaving after Escape: until another key

/** Takes the place of a text area, whose value goes on being the program's text. */
export class CodeEditor {
  /**
   * @param {HTMLTextAreaElement} area is hidden; it gets `input` events where the person changes the text
   * @param {object} host
   * @param {(source: string) => void} host.submit
   * @param {(line: string, program: string) => Promise<{items: string[], start: number}>} host.complete
   * @param {(expression: string, program: string) => Promise<{signature: string, doc: string} | null>} host.describe
   * @param {(text: string) => void} host.say
   * @param {() => void} host.changed
   */
  constructor(area, host) {
    this._area = area;
    this._host = host;
    const root = area.getRootNode(); // of a document or a shadow tree
    const focused = root.activeElement === area;
    const { selectionStart: anchor, selectionEnd: head, scrollTop } = area;
    this._view = new EditorView({ root, state: this._state(area.value, { anchor, head }) });
    area.before(this._view.dom);
    area.hidden = true;
    this._view.scrollDOM.scrollTop = scrollTop;
    if (focused) this._view.focus();
  }

  get value() {
    return this._view.state.doc.toString();
  }

  set value(text) {
    this._view.dispatch({ changes: this._all(text), selection: { anchor: 0 } });
    this._view.scrollDOM.scrollTo(0, 0); // not into view: what writes the text may be elsewhere on the page
  }

  /** Another program, with an undo of its own. */
  open(text) {
    this._view.setState(this._state(text));
    this._view.scrollDOM.scrollTo(0, 0);
    this._area.value = text;
    this._host.changed();
  }

  /** Puts another text in its place, as the person's own doing; undo brings the old one back. */
  replace(text) {
    this._view.dispatch({ changes: this._all(text), selection: { anchor: 0 }, userEvent: 'input.paste', scrollIntoView: true });
    this.focus();
  }

  focus() {
    this._view.focus();
  }

  /** Selects a line and shows it. */
  select(line) {
    const { from: anchor, to: head } = this._view.state.doc.line(line);
    this._view.dispatch({ selection: { anchor, head }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
    this.focus();
  }

  /** Marks the line that raised an error, until the text changes; null marks none. */
  mark(line) {
    markLine(this._view, line);
  }

  _state(doc, selection = { anchor: 0 }) {
    return EditorState.create({ doc, selection, extensions: this._extensions() });
  }

  _all(text) {
    return { from: 0, to: this._view.state.doc.length, insert: text };
  }

  _extensions() {
    const label = this._area.getAttribute('aria-label');
    return [
      lineNumbers(),
      wrongLine,
      history(),
      drawSelection(),
      highlightActiveLine(),
      python(),
      indentUnit.of(STEP),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      autocompletion({
        override: [completeWith(this._host), localCompletionSource],
        selectOnOpen: false, // Enter stays a new line until one is chosen
        icons: false,
        interactionDelay: 0, // as nothing is chosen at first, no key takes it by accident
      }),
      search({ top: true }),
      docs(this._host),
      EditorView.clipboardInputFilter.of((text, state) => cleanPaste(text, before(state, state.selection.main.from))),
      EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
      EditorView.updateListener.of((update) => this._updated(update)),
      this._keys(),
      theme,
    ];
  }

  _keys() {
    const run = () => {
      this._host.submit(this.value);
      return true;
    };
    return [
      Prec.high(
        keymap.of([
          { key: 'Mod-Enter', run },
          { key: 'Ctrl-Enter', run },
          { key: 'Shift-Enter', run },
          { key: 'Enter', run: newLine },
          { key: 'Tab', run: (view) => this._tab(view), shift: (view) => moveInList(view, false) || indentLess(view) },
          { key: 'Escape', run: (view) => this._escape(view) },
          { key: 'F1', run: showDocs },
        ]),
      ),
      keymap.of([...closeBracketsKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
    ];
  }

  /** Takes the one completion or moves among several; completes behind a word; else indents. */
  _tab(view) {
    const { main } = view.state.selection;
    const line = before(view.state);
    if (moveInList(view, true)) return true;
    if (!main.empty) return indentMore(view);
    if (/[\w.]$/.test(line)) this._complete(view, line);
    else view.dispatch(view.state.replaceSelection(STEP.slice(line.length % STEP.length)), { scrollIntoView: true });
    return true;
  }

  async _complete(view, line) {
    const { items, start } = await this._host.complete(line, this.value);
    if (before(view.state) !== line) return; // typed on meanwhile
    const prefix = items.length ? commonPrefix(items) : '';
    const { head } = view.state.selection.main;
    const from = head - (line.length - start);
    if (prefix.length > head - from) {
      const selection = { anchor: from + prefix.length };
      view.dispatch({ changes: { from, to: head, insert: prefix }, selection, userEvent: 'input.complete' });
    }
    if (items.length !== 1) startCompletion(view); // where there is none, the program's own names may be some
  }

  /** Closes what is open; else the next Tab leaves the editor. */
  _escape(view) {
    if (closeCompletion(view) || hideDocs(view)) return true;
    if (view.dom.querySelector('.cm-search')) return false; // its own key closes it
    view.setTabFocusMode(UNTIL_LEFT);
    return true;
  }

  _updated(update) {
    if (!update.docChanged) return;
    this._area.value = this.value;
    this._host.changed();
    const byPerson = update.transactions.some((tr) => ['input', 'delete', 'move', 'undo', 'redo'].some((kind) => tr.isUserEvent(kind)));
    if (byPerson) this._area.dispatchEvent(new Event('input', { bubbles: true }));
  }
}

/** As in the plain text area; between brackets CodeMirror opens them up. */
function newLine(view) {
  const { state } = view;
  const { from, to } = state.selection.main;
  if (/[)\]}]/.test(state.sliceDoc(to, to + 1))) return false;
  view.dispatch({ ...state.replaceSelection(`\n${indentAfter(before(state, from))}`), scrollIntoView: true, userEvent: 'input' });
  return true;
}

/** False where no list is open. */
function moveInList(view, forward) {
  const moved = moveCompletionSelection(forward)(view);
  return moved && currentCompletions(view.state).length === 1 ? acceptCompletion(view) : moved;
}
