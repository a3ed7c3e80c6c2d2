// Features of the playbook language for CodeMirror; the server knows the language, this only shows what it says.
import { autocompletion, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { type Diagnostic, nextDiagnostic, previousDiagnostic } from "@codemirror/lint";
import { type Extension, type Text } from "@codemirror/state";
import { type Command, EditorView, hoverTooltip, keymap } from "@codemirror/view";
import { type Diagnosed, language, type TextEdit } from "../api/language";
import { plain } from "../words/format";

/** Nodes of a text in simple Markdown: code, bold words and lists stay readable, everything else is plain text. */
export function prose(text: string): HTMLElement {
  const box = document.createElement("div");
  box.className = "cm-prose";
  const parts = text.split(/^```\w*\n([\s\S]*?)\n?```$/m);
  parts.forEach((part, at) => {
    if (at % 2) box.append(tagged("pre", part));
    else for (const block of part.split(/\n{2,}/)) if (block.trim()) box.append(paragraph(block.trim()));
  });
  return box;
}

function paragraph(block: string): HTMLElement {
  const made = document.createElement("p");
  for (const part of block.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/)) {
    if (/^`.+`$/.test(part)) made.append(tagged("code", part.slice(1, -1)));
    else if (/^\*\*.+\*\*$/.test(part)) made.append(tagged("strong", part.slice(2, -2)));
    else made.append(plainLines(part));
  }
  return made;
}

/** Keep the line breaks of lists; others only wrap the source. */
const plainLines = (text: string): string => text.split("\n").map(plain).join("\n").replace(/\n(?!- )/g, " ");

function tagged(name: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text.split("\n").map(plain).join("\n");
  return made;
}

const within = (doc: Text, offset: number): number => Math.max(0, Math.min(doc.length, offset));

/** Make edits of the server as one change, which one undo takes back. */
export function applyEdits(view: EditorView, edits: readonly TextEdit[], event: string): void {
  if (edits.length === 0 || view.state.readOnly) return;
  const { doc } = view.state;
  view.dispatch({ changes: edits.map((one) => ({ from: within(doc, one.start), to: within(doc, one.end), insert: one.text })), userEvent: event, scrollIntoView: true });
}

const LEVELS: Record<string, Diagnostic["severity"]> = { error: "error", warning: "warning", info: "info", hint: "hint" };

/** A diagnostic as CodeMirror shows it: a squiggle, what, why and fix on hover, quick fixes as buttons. */
export function squiggle(doc: Text, one: Diagnosed): Diagnostic {
  return {
    from: within(doc, one.start),
    to: within(doc, Math.max(one.start, one.end)),
    severity: LEVELS[one.severity] ?? "info",
    message: one.message,
    renderMessage: () => {
      const box = document.createElement("div");
      box.append(tagged("strong", one.code), ` ${plain(one.message)}`);
      for (const [name, text] of [["why", one.why], ["fix", one.fix]] as const) if (text) box.append(Object.assign(paragraph(text), { className: `cm-${name}` }));
      return box;
    },
    actions: one.fixes.map((fix) => ({ name: plain(fix.title), apply: (view) => applyEdits(view, fix.edits, "input.fix") })),
  };
}

const TYPES: Record<string, string> = { field: "property", kind: "class", step: "function", task: "method", filter: "keyword", function: "function", value: "constant", name: "variable" };
/** Where a typed character asks for more: a word, or a place after which one is due. */
const DUE = /[\w$]$|(?::|-|\{\{|\||\[|,|\{)\s$|\.$/;

async function complete(context: CompletionContext): Promise<CompletionResult | null> {
  const line = context.state.doc.lineAt(context.pos);
  if (!context.explicit && !DUE.test(line.text.slice(0, context.pos - line.from))) return null;
  const found = await language.complete(context.state.doc.toString(), context.pos).catch(() => null);
  if (!found || context.aborted || found.items.length === 0) return null;
  return {
    from: found.start,
    to: Math.max(found.end, context.pos),
    validFor: /^[\w.-]*$/,
    options: found.items.map(
      (one): Completion => ({
        label: one.label,
        displayLabel: plain(one.label),
        detail: plain(one.detail),
        type: TYPES[one.kind] ?? "text",
        apply: one.insert || one.label,
        boost: -one.rank,
        info: one.text ? () => prose(one.text) : undefined,
      }),
    ),
  };
}

const hover = hoverTooltip(
  async (view, pos) => {
    const content = view.state.doc.toString();
    const found = (await language.hover(content, pos).catch(() => null))?.hover;
    if (!found || view.state.doc.toString() !== content) return null;
    return { pos: found.start, end: found.end, above: true, create: () => ({ dom: prose(found.text) }) };
  },
  { hoverTime: 350 },
);

export function jump(view: EditorView, from: number, to = from): void {
  const { doc } = view.state;
  view.dispatch({ selection: { anchor: within(doc, from), head: within(doc, to) }, effects: EditorView.scrollIntoView(within(doc, from), { y: "center" }) });
  view.focus();
}

async function define(view: EditorView, pos: number): Promise<void> {
  const found = await language.definition(view.state.doc.toString(), pos).catch(() => null);
  const first = found?.definitions[0];
  if (first) jump(view, first.start, first.end);
}

export async function format(view: EditorView): Promise<void> {
  const content = view.state.doc.toString();
  const found = await language.format(content);
  if (view.state.doc.toString() === content) applyEdits(view, found.edits, "format");
}

export interface Commands {
  register: () => void;
  run: () => void;
  rename: (pos: number) => void;
  /** Make the first quick fix of what is under the cursor. */
  mend: () => void;
  format: () => void;
}

export function features(commands: () => Commands): Extension {
  const does = (run: (view: EditorView) => void): Command => (view) => {
    run(view);
    return true;
  };
  return [
    autocompletion({ override: [complete], icons: false, maxRenderedOptions: 60, defaultKeymap: true }),
    hover,
    EditorView.domEventHandlers({
      mousedown: (event, view) => {
        const pos = event.ctrlKey || event.metaKey ? view.posAtCoords({ x: event.clientX, y: event.clientY }) : null;
        if (pos === null) return false;
        void define(view, pos);
        return true;
      },
    }),
    keymap.of([
      { key: "F8", run: nextDiagnostic, shift: previousDiagnostic },
      { key: "F12", run: does((view) => void define(view, view.state.selection.main.head)) },
      { key: "F2", run: does((view) => commands().rename(view.state.selection.main.head)) },
      { key: "Shift-Alt-f", run: does(() => commands().format()), preventDefault: true },
      { key: "Mod-s", run: does(() => commands().register()), preventDefault: true },
      { key: "Mod-Enter", run: does(() => commands().run()), preventDefault: true },
      { key: "Mod-.", run: does(() => commands().mend()), preventDefault: true },
    ]),
  ];
}
