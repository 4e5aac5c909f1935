import { Argument, type Command } from 'commander';

interface CompletedOption {
  flag: string;
  description: string;
  takesValue: boolean;
  choices: readonly string[];
}

/** Words that may follow a command. */
interface Completed {
  /** Its words after `fleetpost`. */
  path: string;
  commands: { name: string; description: string }[];
  /** Values that its arguments may have. */
  choices: readonly string[];
  options: CompletedOption[];
}

function completedOf(command: Command, path: readonly string[] = []): Completed[] {
  const options = command.options.map(({ long, description, required, optional, argChoices }) => ({
    flag: long ?? '',
    description,
    takesValue: required || optional,
    choices: argChoices ?? [],
  }));
  options.push({ flag: '--help', description: 'print help', takesValue: false, choices: [] });
  const commands = command.commands.map((one) => ({ name: one.name(), description: one.description() }));
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const own = { path: path.join(' '), commands, choices, options };
  return [own, ...command.commands.flatMap((one) => completedOf(one, [...path, one.name()]))];
}

const wordsOf = ({ commands, choices, options }: Completed): string =>
  [...commands.map(({ name }) => name), ...choices, ...options.map(({ flag }) => flag)].join(' ');

/** A branch of a `case` for each option that takes a value: its choices, or what `otherwise` says. */
function valueBranches(all: readonly Completed[], words: (choices: string) => string): string[] {
  return all.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ flag, choices }) => `    '${path} ${flag}') ${words(choices.join(' '))} ;;`),
  );
}

const pathBranches = (all: readonly Completed[]): string =>
  all
    .filter(({ path }) => path !== '')
    .map(({ path }) => `'${path}'`)
    .join('|');

/** Script for bash, which completes file names if it has no words. */
function bash(all: readonly Completed[]): string {
  return `# bash: source <(fleetpost completion bash)
_fleetpost() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path='' next word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="\${path:+$path }$word"
    case "$next" in ${pathBranches(all)}) path="$next" ;; esac
  done
  case "$path \${COMP_WORDS[COMP_CWORD-1]}" in
${valueBranches(all, (choices) => `COMPREPLY=($(compgen -W '${choices}' -- "$current")); return`).join('\n')}
  esac
  case "$path" in
${all.map((one) => `    '${one.path}') words='${wordsOf(one)}' ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _fleetpost fleetpost
`;
}

function zsh(all: readonly Completed[]): string {
  return `# zsh: source <(fleetpost completion zsh), after compinit
_fleetpost() {
  local current_path='' next word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    next="\${current_path:+$current_path }$word"
    case "$next" in ${pathBranches(all)}) current_path="$next" ;; esac
  done
  case "$current_path \${words[CURRENT-1]}" in
${valueBranches(all, (choices) => (choices === '' ? '_files; return' : `compadd -- ${choices}; return`)).join('\n')}
  esac
  case "$current_path" in
${all.map((one) => `    '${one.path}') compadd -- ${wordsOf(one)}${one.commands.length + one.choices.length > 0 ? '; return' : ''} ;;`).join('\n')}
  esac
  [[ $PREFIX == -* ]] || _files
}
compdef _fleetpost fleetpost
`;
}

const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

function fish(all: readonly Completed[]): string {
  const lines = all.flatMap(({ path, commands, choices: words, options }) => {
    const at = `complete -c fleetpost -n ${quoted(`__fleetpost_at ${quoted(path)}`)}`;
    return [
      ...commands.map(({ name, description }) => `${at} -f -a ${name} -d ${quoted(description)}`),
      ...(words.length > 0 ? [`${at} -f -a ${quoted(words.join(' '))}`] : []),
      ...options.map(({ flag, description, takesValue, choices }) => {
        const values = choices.length > 0 ? ` -x -a ${quoted(choices.join(' '))}` : takesValue ? ' -r' : '';
        return `${at} -l ${flag.slice(2)}${values} -d ${quoted(description)}`;
      }),
    ];
  });
  const paths = all.filter(({ path }) => path !== '').map(({ path }) => quoted(path));
  return `# fish: fleetpost completion fish | source
function __fleetpost_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim -- "$at $word")
    contains -- $next ${paths.join(' ')}; and set at $next
  end
  test "$at" = "$argv[1]"
end
${lines.join('\n')}
`;
}

const shells = { bash, zsh, fish };

/** `completion`. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print the completion of commands and options for a shell')
    .addArgument(new Argument('<shell>').choices(Object.keys(shells)))
    .action((shell: keyof typeof shells) => {
      process.stdout.write(shells[shell](completedOf(program)));
    });
}
