// Runs before the first paint, so that neither the theme nor the folded sidebar flashes.
{
  const root = document.documentElement;
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  root.classList.toggle("folded", localStorage.getItem("folded") === "yes");
  root.classList.add("scripted");
}
