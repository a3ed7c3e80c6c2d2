// Filters of the list of executions that this browser keeps under a name.

const PLACE = "noetl.views";
export interface View {
  name: string;
  q: string;
}

export function savedViews(): View[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(PLACE) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is View => typeof one?.name === "string" && typeof one?.q === "string") : [];
  } catch {
    return [];
  }
}

function keep(views: View[]): View[] {
  try {
    localStorage.setItem(PLACE, JSON.stringify(views));
  } catch {
    // without storage, views live as long as the page
  }
  return views;
}
export const saveView = (views: View[], one: View): View[] => keep([...views.filter((old) => old.name !== one.name), one].sort((a, b) => a.name.localeCompare(b.name)));
export const dropView = (views: View[], name: string): View[] => keep(views.filter((one) => one.name !== name));
