/** How much of its window a collection fills: the time between its oldest and its newest document. */
import type { Service, Stats } from "./service";

/** A window, and the share of it that is filled, from 0 to 1; null if no document has a time. */
export interface WindowFill {
  window: string;
  share: number | null;
}

const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** Returns a period such as `2d` in seconds; null if it is none. */
export function parsePeriod(period: string): number | null {
  const found = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(period.trim());
  return found ? Number(found[1]) * unitSeconds[found[2]!]! : null;
}

/** Returns the share of a window that lies between two times. */
export function findFill(window: string, oldest: string | number | undefined, newest: string | number | undefined): number | null {
  const [seconds, start, end] = [parsePeriod(window), toSeconds(oldest), toSeconds(newest)];
  if (!seconds || start === null || end === null) return null;
  return Math.min(1, Math.max(0, (end - start) / seconds));
}

/** Returns a time of a document in seconds. A number is one in seconds already. */
function toSeconds(time: string | number | undefined): number | null {
  const seconds = typeof time === "string" ? Date.parse(time) / 1000 : (time ?? NaN);
  return Number.isFinite(seconds) ? seconds : null;
}

/** Asks for the fill of a collection; null without a window. */
export async function readWindowFill(service: Service, name: string, stats: Stats): Promise<WindowFill | null> {
  const { window } = await service.getSettings(name);
  if (!window) return null;
  const [oldest, newest] = await Promise.all([service.findDocumentAfter(name, 0), service.findDocumentAfter(name, stats.last_durable_row - 1)]);
  return { window, share: findFill(window, oldest?.time, newest?.time) };
}
