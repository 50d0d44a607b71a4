import type { Pace, Target } from "../target/target.ts";

export interface PacesOptions {
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Fulfils after a time, or as soon as the signal is aborted. Never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Whether a target's pace counts; it always does when not set. */
  readonly applies?: (target: Target) => boolean;
}

/** How one part waits for its turn. */
export interface Turn {
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** Goes ahead after this long, whatever the pace; waits as long as it takes when not set. */
  readonly patienceMs?: number;
}

/** What is known of one target. */
interface Course {
  /** When parts were sent to it lately, oldest first. */
  readonly starts: number[];
  /** The same for each place; the one that was sent to last stands last. */
  readonly places: Map<string, number[]>;
  /** Parts that wait for their turn. */
  waiting: number;
}

/**
 * Keeps to what services take before they say "later" (`Target.pace`), as far as this process sends: sliding windows over
 * the moments at which parts were sent, for each target and for each of its places. Forgets places that are idle.
 */
export class Paces {
  readonly #options: PacesOptions;
  readonly #courses = new Map<string, Course>();

  constructor(options: PacesOptions) {
    this.#options = options;
  }

  /** How many places are remembered: those that were sent to within their window, and no others for long. */
  get places(): number {
    return [...this.#courses.values()].reduce((sum, { places }) => sum + places.size, 0);
  }

  /** How many parts may be sent to a target now, beside those that wait for their turn already. */
  allowance(target: Target): number {
    const overall = this.#paceOf(target)?.overall;
    if (!overall) return Number.POSITIVE_INFINITY;
    const course = this.#course(target);
    return Math.max(0, overall.count - this.#recent(course.starts, overall).length - course.waiting);
  }

  /** When a target that has no allowance has some again; `undefined` while parts wait for it, which say when they end. */
  nextAt(target: Target): number | undefined {
    const overall = this.#paceOf(target)?.overall;
    const course = this.#course(target);
    if (!overall || course.waiting > 0) return undefined;
    return this.#openAt(course.starts, overall);
  }

  /** Waits until a part may be sent to a place, and counts it as sent. False when the signal was aborted first. */
  async turn(target: Target, place: string, { signal, patienceMs = Number.POSITIVE_INFINITY }: Turn): Promise<boolean> {
    const { now, sleep } = this.#options;
    const course = this.#course(target);
    const goAt = now() + patienceMs;
    course.waiting += 1;
    try {
      while (!signal.aborted) {
        const openAt = Math.min(this.#turnAt(target, course, place), goAt);
        const waitMs = openAt - now();
        if (waitMs <= 0) {
          this.#note(target, course, place);
          return true;
        }
        await sleep(waitMs, signal);
      }
      return false;
    } finally {
      course.waiting -= 1;
    }
  }

  #course({ name }: Target): Course {
    const known = this.#courses.get(name);
    if (known) return known;
    const course: Course = { starts: [], places: new Map(), waiting: 0 };
    this.#courses.set(name, course);
    return course;
  }

  #paceOf(target: Target): Target["pace"] {
    return (this.#options.applies?.(target) ?? true) ? target.pace : undefined;
  }

  #turnAt(target: Target, course: Course, place: string): number {
    const pace = this.#paceOf(target);
    const now = this.#options.now();
    const starts = course.places.get(place);
    return Math.max(
      pace?.overall ? this.#openAt(course.starts, pace.overall) : now,
      pace?.perPlace && starts ? this.#openAt(starts, pace.perPlace) : now,
    );
  }

  #note(target: Target, course: Course, place: string): void {
    const pace = this.#paceOf(target);
    const now = this.#options.now();
    if (pace?.overall) this.#recent(course.starts, pace.overall).push(now);
    if (!pace?.perPlace) return;
    const starts = course.places.get(place) ?? [];
    this.#recent(starts, pace.perPlace).push(now);
    course.places.delete(place);
    course.places.set(place, starts);
    this.#forgetIdle(course.places, pace.perPlace);
  }

  /** Places stand in the order in which they were sent to, so the idle ones stand first. */
  #forgetIdle(places: Course["places"], pace: Pace): void {
    for (const [place, starts] of places) {
      if (this.#recent(starts, pace).length > 0) return;
      places.delete(place);
    }
  }

  /** When the window has room for one more. */
  #openAt(starts: number[], { count, everyMs }: Pace): number {
    const recent = this.#recent(starts, { count, everyMs });
    const first = recent[recent.length - count];
    return first === undefined ? this.#options.now() : first + everyMs;
  }

  /** Drops what has left the window. A moment that lies ahead is from before the clock was set back. */
  #recent(starts: number[], { everyMs }: Pace): number[] {
    const now = this.#options.now();
    while (starts.length > 0 && starts[0]! <= now - everyMs) starts.shift();
    while (starts.length > 0 && starts.at(-1)! > now) starts.pop();
    return starts;
  }
}
