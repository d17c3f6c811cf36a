/** Messages by key, in one language. Both languages have the same keys; the compiler and a test hold that. */
import { en } from "./en";
import { zh } from "./zh";

export type MessageKey = keyof typeof en;
export type Message = string | { readonly one: string; readonly other: string };
export type Catalog = Record<MessageKey, Message>;
export type Language = "en" | "zh";

export const catalogs: Record<Language, Catalog> = { en, zh };

/** Values of the placeholders of a message. */
export type Values = Readonly<Record<string, string | number>>;

/** Texts, numbers and units in one language. */
export class Wording {
  private readonly numbers: Intl.NumberFormat;
  readonly locale: string;

  /** `kind` is what the page is about: messages of a kind, such as `pair.kept.pairs`, go before the others. */
  constructor(
    readonly language: Language,
    private readonly kind: string = "",
  ) {
    this.locale = language === "zh" ? "zh-CN" : "en-GB";
    this.numbers = new Intl.NumberFormat(this.locale, { maximumFractionDigits: 0 });
  }

  /** Returns a message. Numbers among the values are written with separators; `n` chooses between singular and plural. */
  text = (key: MessageKey, values: Values = {}): string => {
    const catalog = catalogs[this.language];
    const own = `${key}.${this.kind}`;
    const message = catalog[own in catalog ? (own as MessageKey) : key];
    const pattern = typeof message === "string" ? message : values["n"] === 1 ? message.one : message.other;
    return pattern.replace(/\{(\w+)\}/g, (whole, name: string) => {
      const value = values[name];
      if (value === undefined) return whole;
      return typeof value === "number" ? this.count(value) : value;
    });
  };

  /** Returns the message of a name that comes from data, or another text if there is none. */
  known = (key: string, other: string, values: Values = {}): string => (key in catalogs[this.language] ? this.text(key as MessageKey, values) : other);

  /** Signs between a name and its explanation, and between two sentences. Chinese signs need no space after them. */
  get colon(): string {
    return this.language === "zh" ? "：" : ": ";
  }
  get gap(): string {
    return this.language === "zh" ? "" : " ";
  }

  /** The brackets around a remark, with the space before them. */
  get brackets(): readonly [string, string] {
    return this.language === "zh" ? ["（", "）"] : [" (", ")"];
  }

  /** Returns the label of a button that asks before it does something. */
  asking = (key: MessageKey): string => `${this.text(key)}${this.language === "zh" ? "……" : " …"}`;

  /** Returns a whole number with separators. */
  count = (value: number): string => this.numbers.format(value);

  /** Returns a number with a fixed number of digits after the point. */
  decimal = (value: number, digits: number): string =>
    new Intl.NumberFormat(this.locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);

  /** Returns a similarity: three digits, and as many more as show that it is not 1. */
  similarity = (value: number): string => {
    if (value === 1) return "1";
    const digits = value > 0.9995 ? 6 : 3;
    return (Math.floor(value * 10 ** digits) / 10 ** digits).toFixed(digits);
  };

  /** Returns a share of 1 in per cent. */
  share = (value: number): string => {
    const percent = value * 100;
    if (percent > 0 && percent < 0.05) return `< ${this.decimal(0.1, 1)}\u00a0%`;
    // Beside 100 % a share has the digits of the rest, so that the two add up.
    const rest = Math.min(percent, 100 - percent);
    const digits = rest <= 0 || rest >= 10 ? 0 : percent > 99 ? 2 : 1;
    return `${this.decimal(percent, digits)}\u00a0%`;
  };

  /** Returns a number of bytes with a decimal unit. */
  bytes = (value: number): string => {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let at = 0;
    while (value >= 999.5 && at + 1 < units.length) {
      value /= 1000;
      at += 1;
    }
    return `${this.decimal(value, at > 0 && value < 10 ? 1 : 0)}\u00a0${units[at]}`;
  };
}
