// Sets the theme and the density before the first paint. A file of its own: the page's policy forbids inline scripts.
(() => {
  let kept = {};
  try {
    kept = JSON.parse(localStorage.getItem("noetl.settings") || "{}");
  } catch {
    // a browser without storage has the defaults
  }
  const chosen = kept.theme === "dark" || kept.theme === "light";
  const dark = chosen ? kept.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.documentElement.dataset.density = kept.density === "compact" ? "compact" : "normal";
})();
