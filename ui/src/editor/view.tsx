// The text: CodeMirror in a shadow root, since the CSP allows constructed style sheets only there.
import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useLayoutEffect, useRef } from "react";
import type { Diagnosed } from "../api/language";
import { type Commands, features, squiggle } from "./language";
import { templates } from "./templates";
import css from "./editor.module.css";
import { theme } from "./theme";

interface Props {
  /** The first text; later ones are dispatched to the view. */
  text: string;
  readOnly?: boolean;
  diagnostics: readonly Diagnosed[];
  commands: Commands;
  onReady: (view: EditorView | null) => void;
  onText: (text: string) => void;
  onCursor: (pos: number, line: number) => void;
}

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--blue)" },
  { tag: [tags.comment], color: "var(--text-3)", fontStyle: "italic" },
  { tag: [tags.keyword, tags.typeName, tags.labelName], color: "var(--violet)" },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.meta], color: "var(--text-2)" },
]);

export function TextView({ text, readOnly = false, diagnostics, commands, onReady, onText, onCursor }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ commands, onText, onCursor, onReady });
  latest.current = { commands, onText, onCursor, onReady };
  const first = useRef({ text, readOnly });

  useLayoutEffect(() => {
    const found = host.current as HTMLDivElement;
    const root = found.shadowRoot ?? found.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: first.current.text,
        extensions: [
          features(() => latest.current.commands),
          basics,
          writable.of(EditorState.readOnly.of(first.current.readOnly)),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onText(update.state.doc.toString());
            if (update.docChanged || update.selectionSet) {
              const { head } = update.state.selection.main;
              latest.current.onCursor(head, update.state.doc.lineAt(head).number);
            }
          }),
        ],
      }),
    });
    view.current = made;
    latest.current.onReady(made);
    return () => {
      latest.current.onReady(null);
      view.current = null;
      made.destroy();
    };
  }, []);

  useEffect(() => {
    const here = view.current;
    if (here) here.dispatch(setDiagnostics(here.state, diagnostics.map((one) => squiggle(here.state.doc, one))));
  }, [diagnostics]);
  useEffect(() => {
    view.current?.dispatch({ effects: writable.reconfigure(EditorState.readOnly.of(readOnly)) });
  }, [readOnly]);
  return <div ref={host} className={css.host} data-editor />;
}

const writable = new Compartment();
/** Type over a selection without the browser's own editing, which adds inline styles that the CSP refuses. */
const overwrite = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { from, to, empty } = view.state.selection.main;
    const typed = event.data;
    if (event.inputType !== "insertText" || !typed || empty || view.composing || view.state.readOnly) return false;
    event.preventDefault();
    const insert = () => view.state.update(view.state.replaceSelection(typed), { userEvent: "input.type", scrollIntoView: true });
    if (!view.state.facet(EditorView.inputHandler).some((handler) => handler(view, from, to, typed, insert))) view.dispatch(insert());
    return true;
  },
});
const basics = [
  lineNumbers(),
  highlightActiveLineGutter(),
  highlightActiveLine(),
  highlightSpecialChars(),
  history(),
  foldGutter({ openText: "▾", closedText: "▸" }),
  drawSelection(),
  indentOnInput(),
  indentUnit.of("  "),
  bracketMatching(),
  closeBrackets(),
  highlightSelectionMatches(),
  search({ top: true }),
  lintGutter(),
  yaml(),
  syntaxHighlighting(colours),
  templates,
  theme,
  overwrite,
  EditorView.contentAttributes.of({ "aria-label": "Text of the playbook", spellcheck: "false", tabindex: "0" }),
  // Tab indents; Esc then Tab leaves the text, as the keyboard rules of CodeMirror have it.
  keymap.of([...closeBracketsKeymap, ...completionKeymap, { key: "Tab", run: indentMore, shift: indentLess }, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...defaultKeymap]),
];
