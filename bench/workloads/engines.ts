import type { Postgres } from '../../test/harness/postgres/postgres.ts';
import type { Benchmark } from '../benchmark.ts';
import type { OperationName } from '../engines/loops.ts';
import { EngineNode } from '../engines/node.ts';
import { interleave, type Lane, warmUp } from '../interleave.ts';
import type { Figures } from '../result.ts';
import { cpuMicroseconds } from '../servers/cpu-time.ts';
import { missingPostgres, startPostgres } from '../servers/postgres.ts';

const callerCounts = { short: [64], usual: [64, 256], full: [64, 256] };
const workloads: readonly { operation: OperationName; workload: string }[] = [
  { operation: 'heartbeat', workload: 'heartbeat check' },
  { operation: 'ingest', workload: 'datapoint with its key' },
  { operation: 'cycle', workload: 'mail queued, seen and acked' },
];

interface Subject {
  name: string;
  nodes: readonly EngineNode[];
  database?: Postgres;
}

export const engines: Benchmark = {
  name: 'engines',
  about:
    'The same operations on a shard of each engine, without HTTP: LMDB in one process, PostgreSQL used by one and by two. ' +
    'All is durable when it is answered. CPU is that of the nodes, which make the load, and of all processes of the database.',
  missing: missingPostgres,
  async run(options) {
    const counts = callerCounts[options.size];
    await using database = await startPostgres();
    const started: EngineNode[] = [];
    const start = async (url?: string): Promise<EngineNode> => {
      options.progress('starting a node');
      const node = await EngineNode.start({ devices: Math.max(...counts), ...(url && { url }) });
      started.push(node);
      return node;
    };
    try {
      const url = await database.create();
      const own = await start();
      const [one, two] = [await start(url), await start(url)];
      const subjects: Subject[] = [
        { name: 'LMDB', nodes: [own] },
        { name: 'PostgreSQL', nodes: [one], database },
        { name: 'PostgreSQL', nodes: [one, two], database },
      ];
      const lanes = workloads.flatMap(({ operation, workload }) =>
        counts.flatMap((callers) =>
          subjects.map(
            (subject): Lane => ({
              workload,
              subject: subject.name,
              conditions: { nodes: subject.nodes.length, callers, loop: 'closed' },
              measure: () => measure(subject, operation, callers, options.seconds),
            }),
          ),
        ),
      );
      await warmUp(lanes, options);
      return await interleave(lanes, options);
    } finally {
      for (const node of started) await node.stop();
    }
  },
};

async function measure(
  { nodes, database }: Subject,
  operation: OperationName,
  callers: number,
  seconds: number,
): Promise<Figures> {
  const processIds = database === undefined ? [] : [database.pid];
  const before = cpuMicroseconds(processIds);
  const each = callers / nodes.length;
  const results = await Promise.all(nodes.map((node) => node.loop({ operation, callers: each, seconds })));
  const databaseMicroseconds = cpuMicroseconds(processIds) - before;
  const sum = (of: (result: (typeof results)[number]) => number): number =>
    results.reduce((total, result) => total + of(result), 0);
  const count = sum(({ operations }) => operations);
  const nodesMicroseconds = sum((result) => result.cpuMicroseconds);
  return {
    operationsPerSecond: sum((result) => result.operations / result.seconds),
    cpuMicrosecondsPerOperation: (nodesMicroseconds + databaseMicroseconds) / count,
    nodesMicrosecondsPerOperation: nodesMicroseconds / count,
    ...(database && { databaseMicrosecondsPerOperation: databaseMicroseconds / count }),
  };
}
