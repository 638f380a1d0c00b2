// How CodeMirror looks: the page's own colours and type. Its rules go into a style sheet made by script, which the
// page's policy allows, unlike a style element.

import { classHighlighter, EditorView, syntaxHighlighting } from '../vendor/codemirror.js';

const button = {
  minHeight: '28px',
  margin: '0',
  padding: '0 8px',
  border: '1px solid var(--line-strong)',
  borderRadius: '6px',
  background: 'var(--panel)',
  color: 'var(--ink)',
};

const look = EditorView.theme({
  '&': { height: '100%', background: 'var(--panel)', color: 'var(--ink)' },
  '&.cm-focused': { outline: 'none' },
  // Over the gutter and the bars, which would cover an outline.
  '&.cm-focused::after': { content: '""', position: 'absolute', inset: '1px', border: '2px solid var(--focus)', pointerEvents: 'none', zIndex: '300' },
  '.cm-scroller': { font: 'var(--size-editor, var(--size-code)) / 1.5 var(--font-code)', overflow: 'auto' },
  '.cm-content': { padding: '10px 0', caretColor: 'var(--ink)', tabSize: '4' },
  '.cm-line': { padding: '0 8px' },
  '.cm-cursor': { borderLeft: '2px solid var(--ink)' },
  '.cm-activeLine': { background: 'none' },
  '&.cm-focused .cm-activeLine': { background: 'var(--sunken)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { background: 'var(--selection)' },
  '&.cm-focused .cm-matchingBracket': { background: 'none', outline: '1px solid var(--line-strong)' },
  '&.cm-focused .cm-nonmatchingBracket': { background: 'var(--error-soft)', outline: '1px solid var(--error)' },
  '.cm-searchMatch': { background: 'var(--accent-soft)', outline: '1px solid var(--accent)' },
  '.cm-searchMatch-selected': { background: 'var(--selection)', outline: '2px solid var(--accent)' },
  '.cm-gutters': { background: 'var(--panel)', color: 'var(--ink-dim)', borderRight: '1px solid var(--line)' },
  '.cm-lineNumbers .cm-gutterElement': { minWidth: '3.25rem', padding: '0 8px' },
  // Out of sight CodeMirror measures nothing, and takes lines for 14 px high and the text for one without padding. The
  // first element is hidden and holds the width.
  '.cm-lineNumbers .cm-gutterElement + .cm-gutterElement': { minHeight: '1.5em' },
  '.cm-lineNumbers .cm-gutterElement:nth-child(2)': { marginTop: '10px' },
  '.cm-wrong-line, &.cm-focused .cm-wrong-line.cm-activeLine': { background: 'var(--error-soft)', boxShadow: 'inset 3px 0 var(--error)' },

  '.cm-tooltip': {
    border: '1px solid var(--line-strong)',
    borderRadius: '8px',
    background: 'var(--panel)',
    color: 'var(--ink)',
    boxShadow: '0 6px 20px rgb(0 0 0 / 18%)',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { font: 'var(--size-code) / 1.5 var(--font-code)', maxHeight: '13rem', padding: '4px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '1px 6px', borderRadius: '4px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { background: 'var(--accent)', color: 'var(--accent-ink)' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '600' },
  '.code-docs': { maxWidth: 'min(40rem, 90vw)', maxHeight: '10rem', padding: '8px 10px', overflow: 'auto' },
  '.code-docs:focus-visible': { outlineOffset: '-3px' },
  '.code-docs code': { display: 'block', fontWeight: '600', whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' },
  '.code-docs pre': { margin: '6px 0 0', font: 'var(--size-small) / 1.45 var(--font-code)', whiteSpace: 'pre-wrap' },

  '.cm-panels': { background: 'var(--sunken)', color: 'var(--ink)' },
  '.cm-panels.cm-panels-top': { borderBottom: '1px solid var(--line)' },
  '.cm-panel.cm-search': { display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: '6px', padding: '8px 36px 8px 10px', fontSize: 'var(--size-small)' },
  '.cm-panel.cm-search br': { display: 'none' },
  '.cm-panel.cm-search label': { display: 'inline-flex', alignItems: 'center', gap: '4px', fontSize: 'inherit' },
  '.cm-panel.cm-search input[type=checkbox]': { margin: '0', accentColor: 'var(--accent)' },
  '.cm-textfield': { ...button, flex: '1 1 9rem', minWidth: '7rem', fontSize: 'inherit' },
  '.cm-button': { ...button, backgroundImage: 'none', fontSize: 'inherit' },
  '.cm-button:hover': { background: 'var(--accent-soft)' },
  '.cm-panel.cm-search [name=close]': { top: '6px', right: '8px', minHeight: '28px', width: '28px', padding: '0', fontSize: '1.1rem', color: 'var(--ink)' },

  '.tok-keyword, .tok-operator.tok-keyword': { color: 'var(--code-keyword)' },
  '.tok-string, .tok-string2': { color: 'var(--code-string)' },
  '.tok-number, .tok-bool, .tok-atom': { color: 'var(--code-number)' },
  '.tok-comment': { color: 'var(--ink-dim)', fontStyle: 'italic' },
  '.tok-definition, .tok-className, .tok-meta': { color: 'var(--code-name)' },
});

export const theme = [look, syntaxHighlighting(classHighlighter)];
