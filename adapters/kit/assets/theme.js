// Runs before the first paint, so that a chosen theme does not flash. For that reason it is not a module.
(() => {
  try {
    const theme = localStorage.getItem("rejoinder:theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // No storage: the system's theme.
  }
})();
