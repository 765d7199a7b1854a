"use strict";
(() => {
  const picture = document.getElementById("portrait-picture");
  const controls = document.getElementById("portrait-controls");
  const said = document.getElementById("portrait-said");
  const model = document.getElementById("set-model");
  const noise = document.getElementById("set-noise");
  const sliders = [...controls.querySelectorAll('input[type="range"]')];
  const box = { left: 62, right: 622, top: 16, bottom: 428 };
  const POINTS = 120;

  function read() {
    const at = {};
    for (const slider of sliders) {
      at[slider.name] = slider.dataset.log === "1" ? 10 ** Number(slider.value) : Number(slider.value);
      document.getElementById(`value-${slider.name}`).value = String(Number(at[slider.name].toPrecision(3)));
    }
    return { ...at, eta_OV: 1, eta_QK: at.ratio };
  }

  /** A kernel by name, with the parameters put in. */
  function bound(name, at) {
    const [kernel, names] = gradlineKernels[name];
    return (...states) => kernel(...states, ...names.slice(states.length).map((key) => at[key]));
  }

  /** The closed forms of the chosen model, and the part of the plane that is shown. */
  function setting() {
    const at = read();
    const name = `${model.value}_${noise.value}`;
    const forms = {
      at,
      flow: bound(`${name}_flow`, at),
      integral: bound(`${name}_integral`, at),
      stop: bound(`${name}_stop`, at),
      inverse: bound(`${model.value}_inverse`, at),
    };
    forms.high = Math.max(2, Math.log(at.n / at.m) + 4) / at.gamma;
    forms.wide = 1.25 * Math.max(2, forms.stop(0.01, forms.high));
    forms.left = model.value[2] === "F" ? 0.005 * forms.wide : 0;
    forms.low = model.value[0] === "F" ? 0.005 * forms.high : 0;
    return forms;
  }

  /** mu_OV on the level set of the first integral through (v, q), at another value of mu_QK. */
  function curve(forms, v, q) {
    const [x, y, slope] = forms.integral(v, q);
    return (at) => forms.inverse(Math.max(0, x + (forms.integral(v, at)[1] - y) / slope));
  }

  function bisect(test, low, high) {
    for (let i = 0; i < 60; i++) {
      const middle = (low + high) / 2;
      if (test(middle)) high = middle;
      else low = middle;
    }
    return (low + high) / 2;
  }

  /** Points of a trajectory from its start to the edge; dense at the start, where mu_OV grows as a root. */
  function trajectory(forms, v, q) {
    const along = curve(forms, v, q);
    const end = along(forms.high) > forms.wide ? bisect((at) => along(at) > forms.wide, q, forms.high) : forms.high;
    const points = [];
    for (let i = 0; i <= POINTS; i++) {
      const height = q + (end - q) * (i / POINTS) ** 2;
      points.push([i === 0 ? v : along(height), height]);
    }
    return points;
  }

  const across = (forms, v) => box.left + (v / forms.wide) * (box.right - box.left);
  const up = (forms, q) => box.bottom - (q / forms.high) * (box.bottom - box.top);

  function path(forms, points, kind) {
    const visible = points.filter(([v, q]) => Number.isFinite(v) && Number.isFinite(q) && v <= forms.wide * 1.0001);
    const text = visible.map(([v, q]) => `${across(forms, v).toFixed(2)} ${up(forms, q).toFixed(2)}`).join("L");
    return text ? `<path class="${kind}" d="M${text}"/>` : "";
  }

  function ticks(largest) {
    const rough = largest / 5;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough);
    return Array.from({ length: Math.floor(largest / step) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
  }

  /** A coordinate with its subscript, in the picture and in the text. */
  const symbol = (circuit) => `μ<tspan dy="4" font-size="75%">${circuit}</tspan><tspan dy="-4">\u200b</tspan>`;
  const written = (circuit) => `μ<sub>${circuit}</sub>`;

  function axes(forms) {
    let text = "";
    for (const v of ticks(forms.wide)) {
      const x = across(forms, v);
      text += `<path class="grid" d="M${x} ${box.top}V${box.bottom}"/>`;
      text += `<text class="tick" x="${x}" y="${box.bottom + 17}" text-anchor="middle">${v}</text>`;
    }
    for (const q of ticks(forms.high)) {
      const y = up(forms, q);
      text += `<path class="grid" d="M${box.left} ${y}H${box.right}"/>`;
      text += `<text class="tick" x="${box.left - 7}" y="${y + 4}" text-anchor="end">${q}</text>`;
    }
    text += `<path class="axis" d="M${box.left} ${box.top}V${box.bottom}H${box.right}"/>`;
    const middle = (box.left + box.right) / 2;
    text += `<text x="${middle}" y="${box.bottom + 40}" text-anchor="middle">${symbol("OV")}, output-value</text>`;
    const half = (box.top + box.bottom) / 2;
    return `${text}<text transform="translate(18 ${half}) rotate(-90)" text-anchor="middle">${symbol("QK")}, query-key</text>`;
  }

  function arrows(forms) {
    let text = "";
    for (let i = 1; i < 12; i++) {
      for (let j = 1; j < 9; j++) {
        const v = (forms.wide * i) / 12;
        const q = (forms.high * j) / 9;
        const [fast, slow] = forms.flow(v, q);
        const x = (fast / forms.wide) * (box.right - box.left);
        const y = -(slow / forms.high) * (box.bottom - box.top);
        const size = 13 / (Math.hypot(x, y) || 1);
        const [dx, dy] = [x * size, y * size];
        const [tx, ty] = [across(forms, v) + dx / 2, up(forms, q) + dy / 2];
        const wing = (sign) => `M${tx - 0.3 * dx + sign * 0.2 * dy} ${ty - 0.3 * dy - sign * 0.2 * dx}L${tx} ${ty}`;
        text += `<path class="arrow" d="M${tx - dx} ${ty - dy}L${tx} ${ty}${wing(1)}${wing(-1)}"/>`;
      }
    }
    return text;
  }

  function contour(forms, loss, chosen) {
    const points = [];
    for (let i = 0; i <= POINTS; i++) {
      const q = (forms.high * i) / POINTS;
      const v = forms.stop(loss, q);
      if (v >= 0 && v <= forms.wide) points.push([v, q]);
    }
    if (points.length < 2) return "";
    const [v, q] = points[points.length - 1];
    const label = `L = ${Number(loss.toPrecision(3))}`;
    const place = `x="${across(forms, v) + 5}" y="${up(forms, q) + (chosen ? 30 : 14)}"`;
    return `${path(forms, points, chosen ? "dash chosen" : "dash")}<text class="contour" ${place}>${label}</text>`;
  }

  /** Where a trajectory has the stopping loss, if it does at all. */
  function stop(forms, v, q) {
    const loss = forms.at.L;
    if (loss >= forms.flow(v, q)[2]) return null;
    const along = curve(forms, v, q);
    let high = forms.high;
    for (let i = 0; i < 30 && !(forms.flow(along(high), high)[2] < loss); i++) high *= 1.5;
    if (!(forms.flow(along(high), high)[2] < loss)) return null;
    const height = bisect((at) => forms.flow(along(at), at)[2] < loss, q, high);
    return [along(height), height];
  }

  function tell(forms, v, q, end) {
    const short = (value) => Number(value.toPrecision(4));
    const start = `From ${written("OV")} = ${short(v)}, ${written("QK")} = ${short(q)}, loss ${short(forms.flow(v, q)[2])}: `;
    const loss = short(forms.at.L);
    if (end === null) return `${start}the start is at or below the stopping loss ${loss}, or the loss is not reached.`;
    const mass = short(forms.flow(...end)[3]);
    const beyond = end[0] > forms.wide || end[1] > forms.high ? ", beyond the picture" : "";
    return `${start}loss ${loss} at ${written("OV")} = ${short(end[0])}, ${written("QK")} = ${short(end[1])}, attention ${mass}${beyond}.`;
  }

  function draw() {
    controls.querySelector("#set-N").closest(".slider").hidden = noise.value !== "finite";
    const forms = setting();
    const part = (value, least, size) => least + (Number(value) / 100) * (size - least);
    const v = part(forms.at.v_0, forms.left, forms.wide);
    const q = part(forms.at.q_0, forms.low, forms.high);
    let text = axes(forms) + arrows(forms);
    for (let i = 0; i < 9; i++) {
      text += path(forms, trajectory(forms, forms.left, forms.low + (i / 9) * (forms.high - forms.low)), "thin");
      text += i === 0 ? "" : path(forms, trajectory(forms, (i / 9) * forms.wide, forms.low), "thin");
    }
    for (const loss of [0.5, 0.1, 0.01]) if (Math.abs(Math.log(loss / forms.at.L)) > 0.2) text += contour(forms, loss, false);
    text += contour(forms, forms.at.L, true) + path(forms, trajectory(forms, v, q), "bold");
    const end = stop(forms, v, q);
    const inside = end !== null && end[0] <= forms.wide && end[1] <= forms.high;
    for (const [x, y, r] of [[v, q, 4], ...(inside ? [[...end, 6]] : [])]) {
      text += `<circle cx="${across(forms, x)}" cy="${up(forms, y)}" r="${r}"/>`;
    }
    picture.innerHTML = text;
    said.innerHTML = tell(forms, v, q, end);
  }

  picture.addEventListener("click", (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    const percent = (value) => Math.round(100 * Math.min(0.95, Math.max(0, value)));
    document.getElementById("set-v_0").value = percent((point.x - box.left) / (box.right - box.left));
    document.getElementById("set-q_0").value = percent((box.bottom - point.y) / (box.bottom - box.top));
    draw();
  });
  controls.addEventListener("input", draw);
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("reset", () => setTimeout(draw));
  draw();
})();
