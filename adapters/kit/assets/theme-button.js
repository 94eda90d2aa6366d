// The button that switches between the light and the dark theme.

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** Lets `button` switch the theme. `label` names what it does, from whether it is dark now; `shown` is called after each change. */
export function switchTheme(button, label, shown = () => {}) {
  const root = document.documentElement;
  const show = () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark.matches;
    button.setAttribute("aria-label", label(isDark));
    button.title = button.getAttribute("aria-label");
    document.querySelector('meta[name="theme-color"]').content = getComputedStyle(document.body).backgroundColor;
    shown();
    return isDark;
  };
  button.addEventListener("click", () => {
    const theme = show() ? "light" : "dark";
    // The system's own theme need not be remembered.
    const isSystem = (theme === "dark") === systemIsDark.matches;
    root.dataset.theme = theme;
    try {
      if (isSystem) localStorage.removeItem("rejoinder:theme");
      else localStorage.setItem("rejoinder:theme", theme);
    } catch {
      // Not stored.
    }
    if (isSystem) delete root.dataset.theme;
    show();
  });
  systemIsDark.addEventListener("change", show);
  show();
}
