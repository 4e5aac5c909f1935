import type { RunFigures } from '../../../device/simulator/run/figures.ts';
import { ms, routeLines } from '../../../device/simulator/run/report.ts';
import type { SimulationListener } from '../../../device/simulator/run/simulation.ts';
import { lengthText } from '../../../device/simulator/scenario/quantity.ts';
import type { Scenario } from '../../../device/simulator/scenario/scenario.ts';
import { FullScreen } from '../server/full-screen.ts';

const screenMs = 1_000;
const lineMs = 10_000;
const eventsShown = 8;
const endingSignals = ['SIGINT', 'SIGTERM'] as const;

/** Shows a run while it goes on: on the whole of a terminal, or else a line now and then on stderr. */
export class SimulationView implements SimulationListener, Disposable {
  readonly #screen: FullScreen | undefined;
  readonly #isQuiet: boolean;
  readonly #onSignal: () => void;
  readonly #events: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #phase = 'starting';
  #fleetId = '';
  #link: string | undefined;
  #linkOf: (() => Promise<string | undefined>) | undefined;
  #isEnded = false;

  constructor({ json = false }: { json?: boolean }, onSignal: () => void) {
    this.#isQuiet = json;
    this.#screen = json || !process.stdout.isTTY ? undefined : new FullScreen(process.stdout, process.stdin);
    this.#onSignal = onSignal;
    for (const signal of endingSignals) process.on(signal, onSignal);
  }

  /** Aborts when the user ends it by a key. */
  get signal(): AbortSignal {
    return this.#screen?.signal ?? new AbortController().signal;
  }

  /** Begins to show the figures. */
  show(figures: RunFigures, scenario: Scenario, linkOf: () => Promise<string | undefined>): void {
    this.#linkOf = linkOf;
    const turn = (): void => {
      if (!figures.isBegun) this.#screen?.show(() => this.#phase);
      else if (this.#screen === undefined) this.#say(lineOf(figures));
      else this.#screen.show(() => this.#picture(figures, scenario));
    };
    this.#timer = setInterval(turn, this.#screen === undefined ? lineMs : screenMs);
  }

  onPhase(text: string): void {
    this.#phase = text;
    this.#say(text);
  }

  onFleet(fleetId: string): void {
    this.#fleetId = fleetId;
    if (this.#isQuiet) return;
    void this.#linkOf?.().then((link) => {
      this.#link = link;
      if (link !== undefined) this.#say(`fleet ${fleetId}; in the console, within a minute: ${link}`);
    });
  }

  onEvent(text: string): void {
    this.#events.push(text);
    this.#say(text);
  }

  /** Gives the terminal back. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearInterval(this.#timer);
    for (const signal of endingSignals) process.off(signal, this.#onSignal);
    this.#screen?.[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.end();
  }

  #say(text: string): void {
    if (!this.#isQuiet && this.#screen === undefined) process.stderr.write(`${text}\n`);
  }

  #picture(figures: RunFigures, scenario: Scenario): string {
    return [
      `${scenario.devices} devices, fleet ${this.#fleetId}, seed ${scenario.seed}: ${this.#phase}; ${lengthText(
        Math.floor(figures.seconds) * 1_000,
      )} of ${lengthText(scenario.milliseconds)}. q ends the run, and checks it.`,
      ...(this.#link === undefined ? [] : [`Console, within a minute: ${this.#link}`]),
      '',
      // In two lines, for terminals of a usual width.
      ...lineOf(figures).split(/; (?=errors)/),
      figures.bottleneck === undefined ? '' : `The machine is the bottleneck: ${figures.bottleneck}.`,
      '',
      ...routeLines(figures.routes()),
      '',
      ...this.#events.slice(-eventsShown),
    ].join('\n');
  }
}

function lineOf(figures: RunFigures): string {
  const { online, connections, streams, queued, busy } = figures.gauges;
  const { errors, failures, refused, retries, late, dropped } = figures.counts;
  let answered = 0;
  let slowest = 0;
  for (const [route, { count, p99 }] of figures.takeRecent()) {
    if (route === 'lag') continue;
    answered += count;
    slowest = Math.max(slowest, p99);
  }
  return (
    `${lengthText(Math.floor(figures.seconds) * 1_000)}: ${online} online, ${connections} connections, ${streams} streams; ` +
    `${answered} answers, p99 ${ms(slowest)}; ${queued} wait; errors ${errors}, unanswered ${failures}, later ${refused}, ` +
    `retries ${retries}, late ${late}, dropped ${dropped}; lag p99 ${ms(figures.lag.p99)}, busy ${Math.round(100 * busy)}%`
  );
}
