// Signature and docstring of a name in the program: under the pointer, with F1 at the cursor, and of what is being called
// when its bracket is opened.

import { activateHover, closeHoverTooltips, EditorView, hasHoverTooltips, hoverTooltip, syntaxTree } from '../vendor/codemirror.js';

const SILENT = /String|Comment|Number/; // the parts of a program in which words are no names
const MOST = 2000; // characters between an open bracket and the cursor

/** @param {{describe: (expression: string, program: string) => Promise<{signature: string, doc: string} | null>}} host */
export function docs(host) {
  const source = async (view, pos, side) => {
    const found = expressionAt(view.state, pos, side);
    const told = found && (await host.describe(found.text, view.state.doc.toString()));
    return told ? { pos: found.from, end: found.to, above: true, create: () => ({ dom: shown(told, view) }) } : null;
  };
  return [
    hoverTooltip(source, { hideOn: (tr, { pos, end }) => Boolean(tr.changes.touchesRange(pos, end)), hoverTime: 400 }),
    EditorView.updateListener.of((update) => {
      const { head } = update.state.selection.main;
      const typed = update.docChanged && update.transactions.some((tr) => tr.isUserEvent('input.type') || tr.isUserEvent('input.complete'));
      if (typed && /\w\($/.test(update.state.sliceDoc(Math.max(0, head - 2), head))) whileCalling(update.view, head);
    }),
  ];
}

/** For a key: tells of the name at the cursor; the second time goes into what is told, to scroll it. */
export function showDocs(view) {
  const open = view.dom.querySelector('.code-docs');
  if (open) {
    open.focus();
    return true;
  }
  const { head } = view.state.selection.main;
  activateHover(view, head, -1, { until: (tr) => tr.docChanged || Boolean(tr.selection) });
  return true;
}

export function hideDocs(view) {
  if (!hasHoverTooltips(view.state)) return false;
  view.dispatch({ effects: closeHoverTooltips });
  return true;
}

/** From an open bracket until the cursor leaves it. */
function whileCalling(view, inside) {
  const line = view.state.sliceDoc(view.state.doc.lineAt(inside).from, inside);
  if (/\b(def|class)\s+\w+\($/.test(line)) return;
  const left = ({ state }) => {
    const { head } = state.selection.main;
    return head < inside || head > inside + MOST || closed(state.sliceDoc(inside, head));
  };
  // Not in the middle of the update that this listener hears of.
  setTimeout(() => activateHover(view, inside - 1, -1, { until: left }));
}

function closed(text) {
  let depth = 1;
  for (const letter of text) {
    if ('([{'.includes(letter)) depth += 1;
    else if (')]}'.includes(letter)) depth -= 1;
    if (!depth) return true;
  }
  return false;
}

/** The dotted name at a place, up to the end of the word there. */
function expressionAt(state, pos, side) {
  if (SILENT.test(syntaxTree(state).resolveInner(pos, side).name)) return null;
  const { from, text } = state.doc.lineAt(pos);
  const left = text.slice(0, pos - from).match(/[\w.]*$/)[0];
  const right = text.slice(pos - from).match(/^\w*/)[0];
  const name = left + right;
  if (!/^[A-Za-z_]\w*(\.\w+)*$/.test(name)) return null;
  return { text: name, from: pos - left.length + (left.lastIndexOf('.') + 1), to: pos + right.length };
}

function shown({ signature, doc }, view) {
  const box = document.createElement('div');
  box.className = 'code-docs';
  box.tabIndex = 0; // it scrolls
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', 'Documentation');
  box.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    hideDocs(view);
    view.focus();
  });
  const head = box.appendChild(document.createElement('code'));
  head.textContent = signature;
  if (doc) box.appendChild(document.createElement('pre')).textContent = doc;
  return box;
}
