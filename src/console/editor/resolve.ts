import { syntaxTree } from '@codemirror/language';
import type { EditorState } from '@codemirror/state';
import type { SyntaxNode } from '@lezer/common';
import { type ApiShapes, type Member, membersOfSchemas, type Shape } from './shapes.ts';

/** The world of an action: its API, and the schemas whose records it runs for. */
export interface ActionWorld {
  api: ApiShapes;
  payloads: readonly unknown[];
}

/** A declaration, of which nothing may be known: it hides those further out all the same. */
interface Found {
  shape: Shape | undefined;
}

/** Expressions are followed this far: `a.b(c).d` is three. */
const stepsMax = 24;

const functions = ['ArrowFunction', 'FunctionDeclaration', 'FunctionExpression'];

/** Members of a shape. */
export function membersOfShape(shape: Shape | undefined, { api, payloads }: ActionWorld): readonly Member[] {
  if (shape === undefined) return [];
  if ('schemas' in shape) return membersOfSchemas(shape.schemas);
  return shape.api === 'Payload' ? membersOfSchemas(payloads) : (api.get(shape.api) ?? []);
}

/** Tells what expressions of one source are. */
export class Resolver {
  readonly #state: EditorState;
  readonly #world: ActionWorld;
  #stepsLeft = stepsMax;

  constructor(state: EditorState, world: ActionWorld) {
    this.#state = state;
    this.#world = world;
  }

  /** Members that may stand at a place: after a dot, or in the braces that take a value apart. */
  membersAt(position: number): readonly Member[] | undefined {
    const node = syntaxTree(this.#state).resolveInner(position, -1);
    for (let at: SyntaxNode | null = node; at !== null; at = at.parent) {
      if (at.name === 'MemberExpression' && at.firstChild && position > at.firstChild.to)
        return membersOfShape(this.#shapeOf(at.firstChild), this.#world);
      if (at.name === 'ObjectPattern') return membersOfShape(this.#patternShape(at), this.#world);
      if (at.name === 'Block' || at.name === 'ArgList' || at.name === 'String') return undefined;
    }
    return undefined;
  }

  #text({ from, to }: SyntaxNode): string {
    return this.#state.sliceDoc(from, to);
  }

  #shapeOf(node: SyntaxNode | null): Shape | undefined {
    this.#stepsLeft -= 1;
    if (node === null || this.#stepsLeft < 0) return undefined;
    switch (node.name) {
      case 'VariableName':
        return this.#variable(this.#text(node), node);
      case 'MemberExpression': {
        const name = node.getChild('PropertyName');
        return name ? this.#member(this.#shapeOf(node.firstChild), this.#text(name)) : undefined;
      }
      case 'CallExpression':
      case 'PostfixExpression':
        return this.#shapeOf(node.firstChild);
      case 'AwaitExpression':
        return this.#shapeOf(node.lastChild);
      case 'ParenthesizedExpression':
        return this.#shapeOf(node.firstChild?.nextSibling ?? null);
      default:
        return undefined;
    }
  }

  #member(shape: Shape | undefined, name: string): Shape | undefined {
    return membersOfShape(shape, this.#world).find((one) => one.name === name)?.shape;
  }

  /** Looks for the declaration of a variable, from the place of its use outwards. */
  #variable(name: string, from: SyntaxNode): Shape | undefined {
    for (let scope = from.parent; scope !== null; scope = scope.parent) {
      if (functions.includes(scope.name)) {
        const found = this.#parameter(name, scope);
        if (found !== undefined) return found.shape;
      } else if (scope.name === 'Block' || scope.name === 'Script') {
        for (const declaration of scope.getChildren('VariableDeclaration')) {
          if (declaration.from > from.from) break;
          const found = this.#declared(name, declaration);
          if (found !== undefined) return found.shape;
        }
      }
    }
    return undefined;
  }

  #declared(name: string, declaration: SyntaxNode): Found | undefined {
    const value =
      declaration.lastChild?.name === ';' ? declaration.lastChild.prevSibling : declaration.lastChild;
    const variable = declaration.getChild('VariableDefinition');
    if (variable && this.#text(variable) === name) return { shape: this.#shapeOf(value ?? null) };
    const pattern = declaration.getChild('ObjectPattern');
    return pattern ? this.#inPattern(name, pattern, () => this.#shapeOf(value ?? null)) : undefined;
  }

  /** A parameter of the action itself: its record, or the fleet. */
  #parameter(name: string, scope: SyntaxNode): Found | undefined {
    for (const [index, parameter] of parametersOf(scope).entries()) {
      if (parameter.name === 'VariableDefinition' && this.#text(parameter) === name)
        return { shape: shapeOfParameter(scope, index) };
      if (parameter.name === 'ObjectPattern') {
        const found = this.#inPattern(name, parameter, () => shapeOfParameter(scope, index));
        if (found !== undefined) return found;
      }
    }
    return undefined;
  }

  #inPattern(name: string, pattern: SyntaxNode, whole: () => Shape | undefined): Found | undefined {
    for (const property of pattern.getChildren('PatternProperty')) {
      const variable = property.getChild('VariableDefinition');
      if (!variable || this.#text(variable) !== name) continue;
      const member = this.#text(property.getChild('PropertyName') ?? variable);
      return { shape: this.#member(whole(), member) };
    }
    return undefined;
  }

  /** Shape of the value that a pattern takes apart. */
  #patternShape(pattern: SyntaxNode): Shape | undefined {
    const { parent } = pattern;
    if (parent?.name === 'VariableDeclaration') {
      const last = parent.lastChild?.name === ';' ? parent.lastChild.prevSibling : parent.lastChild;
      return this.#shapeOf(last ?? null);
    }
    if (parent?.name !== 'ParamList' || !parent.parent) return undefined;
    const index = parametersOf(parent.parent).findIndex((one) => one.from === pattern.from);
    return shapeOfParameter(parent.parent, index);
  }
}

function parametersOf(scope: SyntaxNode): SyntaxNode[] {
  const list = scope.getChild('ParamList');
  const found: SyntaxNode[] = [];
  for (let at = list?.firstChild ?? null; at !== null; at = at.nextSibling)
    if (at.name === 'VariableDefinition' || at.name === 'ObjectPattern') found.push(at);
  return found;
}

/** Shape of a parameter, if its function is within no other, as an action is. */
function shapeOfParameter(scope: SyntaxNode, index: number): Shape | undefined {
  for (let at = scope.parent; at !== null; at = at.parent) if (functions.includes(at.name)) return undefined;
  const api = ['ActionRecord', 'Fleet'][index];
  return api === undefined ? undefined : { api };
}
