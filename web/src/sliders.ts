// A slider with its name and its value beside it.

export interface SliderOptions {
  name: string;
  label: string;
  least: number;
  most: number;
  step: number;
  value: number;
  unit?: string;
}

export interface Slider {
  value: number;
  readonly element: HTMLElement;
}

export function makeSlider(options: SliderOptions, changed: (value: number) => void): Slider {
  const element = document.createElement("div");
  element.className = "slider";
  const label = document.createElement("label");
  const shown = document.createElement("output");
  const input = document.createElement("input");
  input.type = "range";
  input.id = `slider-${options.name}`;
  input.min = String(options.least);
  input.max = String(options.most);
  input.step = String(options.step);
  label.htmlFor = input.id;
  label.textContent = options.label;
  const decimals = (String(options.step).split(".")[1] ?? "").length;
  const show = () => {
    shown.textContent = `${Number(input.value).toFixed(decimals)}${options.unit ? ` ${options.unit}` : ""}`;
  };
  input.addEventListener("input", () => {
    show();
    changed(Number(input.value));
  });
  element.append(label, shown, input);
  const slider: Slider = {
    element,
    get value() {
      return Number(input.value);
    },
    set value(value: number) {
      input.value = String(value);
      show();
    },
  };
  slider.value = options.value;
  return slider;
}
