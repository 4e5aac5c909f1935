import '../../../core/private-process.ts';
import { Connections } from '../connection/connections.ts';
import { DeviceStates, firstSendTimer } from './device-states.ts';
import { Ledger } from './ledger.ts';
import { type DevicesOrder, type DevicesTask, type DevicesWord, noCounts } from './orders.ts';
import { plansOf } from './plan.ts';
import { Samples } from './samples.ts';
import { SimulatedDevices } from './simulated-devices.ts';
import { World } from './world.ts';

const turnMs = 1;
const reportMs = 500;
const sweepMs = 1_000;
/** Requests that wait for a shared connection. */
const waitingMax = 1_000_000;

function say(word: DevicesWord): void {
  process.send?.(word);
}

/** A process of devices, from its task to its end. */
class DeviceProcess {
  readonly #world: World;
  readonly #devices: SimulatedDevices;
  readonly #ledger: Ledger;
  #utilization = performance.eventLoopUtilization();

  constructor(task: DevicesTask) {
    const { scenario, processes, process: own } = task;
    const plans = plansOf(scenario);
    const timers = firstSendTimer + Math.max(...plans.map(({ sends }) => sends.length));
    const count = Math.floor((scenario.devices - own - 1) / processes) + 1;
    this.#ledger = new Ledger(task.folder, own);
    this.#world = new World(task, plans, {
      states: new DeviceStates(count, timers),
      connections: new Connections(task.nodes, {
        sharedMax: task.connectionsMax,
        waitingMax,
      }),
      samples: new Samples(),
      ledger: this.#ledger,
      counts: { ...noCounts },
    });
    this.#devices = new SimulatedDevices(this.#world);
  }

  run(): void {
    const turn = (): void => {
      const lagMs = this.#devices.advance();
      if (lagMs > 0) this.#world.samples.add('lag', lagMs, lagMs);
      setTimeout(turn, turnMs);
    };
    turn();
    setInterval(() => this.#report(), reportMs);
    setInterval(() => this.#world.connections.sweep(), sweepMs);
  }

  async obey(order: DevicesOrder): Promise<void> {
    if (order.type !== 'finish') return this.#devices.obey(order);
    const unfinished = await this.#devices.finish(order.drainMs);
    this.#ledger.close();
    this.#report();
    say({ type: 'finished', unfinished });
  }

  #report(): void {
    const { connections, counts, samples, states, complaints } = this.#world;
    const utilization = performance.eventLoopUtilization(this.#utilization);
    this.#utilization = performance.eventLoopUtilization();
    say({
      type: 'report',
      report: {
        counts: { ...counts },
        online: this.#devices.online,
        connections: connections.open,
        streams: connections.streams,
        waiting: connections.waiting,
        queued: this.#devices.sender.queued,
        residentBytes: process.memoryUsage.rss(),
        stateBytes: states.bytes,
        busy: utilization.utilization,
        samples: samples.take(),
        complaints: complaints.splice(0),
      },
    });
  }
}

let devices: DeviceProcess | undefined;
process.on('message', (order: DevicesOrder) => {
  if (order.type === 'begin') {
    devices = new DeviceProcess(order.task);
    devices.run();
  } else void devices?.obey(order);
});
process.on('disconnect', () => process.exit());
// The run ends it: Ctrl-C goes to the whole group.
process.on('SIGINT', () => {});
say({ type: 'ready' });
