import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { LiveSettings } from '../../../src/core/config/settings.ts';
import { configKeys, isReloadable } from '../../../src/server/configuration/config.ts';
import { configWith } from '../../harness/server/config.ts';

const source = new URL('../../../src', import.meta.url).pathname;
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
);

it('a change replaces the snapshot, which is frozen', () => {
  const settings = new LiveSettings({ a: 1, b: 2 });
  const before = settings.current;
  settings.change({ a: 3 });
  expect([before, settings.current]).toEqual([
    { a: 1, b: 2 },
    { a: 3, b: 2 },
  ]);
  expect([before, settings.current].every(Object.isFrozen)).toBe(true);
});

it('a key is either fixed or one of the settings', () => {
  const { settings, ...fixed } = configWith();
  expect(Object.keys(settings.current)).toEqual(configKeys.filter(isReloadable));
  expect(Object.keys(fixed)).toEqual(configKeys.filter((key) => !isReloadable(key)));
  expect(Object.isFrozen(configWith())).toBe(true);
});

/** Tells whether the value is computed once for all of an object: by its constructor, not by a function made there. */
function isKept(node: ts.Node): boolean {
  for (let parent = node.parent; parent !== undefined; parent = parent.parent) {
    if (ts.isConstructorDeclaration(parent) || ts.isPropertyDeclaration(parent)) return true;
    if (ts.isFunctionLike(parent)) return false;
  }
  return false;
}

it('every setting is read where it is used, and no object keeps what it was at its start', () => {
  const read = new Set<string>();
  const kept: string[] = [];
  for (const name of files) {
    const tree = ts.createSourceFile(
      name,
      readFileSync(join(source, name), 'utf8'),
      ts.ScriptTarget.Latest,
      true,
    );
    const visit = (node: ts.Node): void => {
      ts.forEachChild(node, visit);
      if (!ts.isPropertyAccessExpression(node) || !/settings\s*\.current$/.test(node.getText())) return;
      const { parent } = node;
      if (ts.isPropertyAccessExpression(parent)) read.add(parent.name.text);
      if (ts.isVariableDeclaration(parent) && ts.isObjectBindingPattern(parent.name))
        for (const { name: own, propertyName } of parent.name.elements)
          read.add((propertyName ?? own).getText());
      if (isKept(node)) kept.push(`${name}: ${parent.getText()}`);
    };
    visit(tree);
  }
  expect(configKeys.filter(isReloadable).filter((key) => !read.has(key))).toEqual([]);
  expect(kept).toEqual([]);
});
