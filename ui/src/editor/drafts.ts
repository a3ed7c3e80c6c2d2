// Texts that are not registered yet, kept in the browser, one for each path; the empty path is the new playbook.

export interface Draft {
  text: string;
  /** The version it began with; 0 for a new playbook. */
  version: number;
}
const nameOf = (path: string): string => `noetl.draft:${path}`;

export const drafts = {
  get(path: string): Draft | null {
    try {
      const found = JSON.parse(localStorage.getItem(nameOf(path)) ?? "null") as Partial<Draft> | null;
      return found && typeof found.text === "string" && typeof found.version === "number" ? { text: found.text, version: found.version } : null;
    } catch {
      return null;
    }
  },
  /** Keep a draft; false if the browser has no room for it. */
  set(path: string, draft: Draft): boolean {
    try {
      localStorage.setItem(nameOf(path), JSON.stringify(draft));
      return true;
    } catch {
      return false;
    }
  },
  drop(path: string): void {
    try {
      localStorage.removeItem(nameOf(path));
    } catch {
      // without storage there is no draft
    }
  },
};
