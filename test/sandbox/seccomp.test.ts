import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type Architecture, refusedCalls, seccompFilter } from "../../src/sandbox/seccomp.ts";

const architectures = ["x64", "arm64"] as const;
const auditNumbers = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
const i386 = 0x40000003;
const allow = 0x7fff0000;
const kill = 0x80000000;
const eperm = 0x00050001;
const enosys = 0x00050026;

/** Calls of everyday programs: read, write, openat, mmap, execve, exit_group, wait4, kill, getpid, socket. */
const everyday: Record<Architecture, number[]> = {
  x64: [0, 1, 257, 9, 59, 231, 61, 62, 39, 41],
  arm64: [63, 64, 56, 222, 221, 94, 260, 129, 172, 198],
};
const cloneCall: Record<Architecture, number> = { x64: 56, arm64: 220 };
const ioctlCall: Record<Architecture, number> = { x64: 16, arm64: 29 };
const ptraceCall: Record<Architecture, number> = { x64: 101, arm64: 117 };
const unshareCall: Record<Architecture, number> = { x64: 272, arm64: 97 };

for (const architecture of architectures) {
  const judge = (call: number, args: bigint[] = [], audit: number = auditNumbers[architecture]) =>
    execute(seccompFilter(architecture), { call, audit, args });

  suite(`seccomp filter for ${architecture}`, () => {
    test("is a well formed program: whole instructions, jumps within it, a verdict on every way", () => {
      const instructions = decode(seccompFilter(architecture));
      assert.ok(instructions.length < 4096);
      for (const [index, { code, skipIfTrue, skipIfFalse }] of instructions.entries()) {
        assert.ok([0x20, 0x15, 0x35, 0x45, 0x06].includes(code));
        if (code !== 0x06) assert.ok(index + 1 + Math.max(skipIfTrue, skipIfFalse) < instructions.length);
      }
      assert.equal(instructions.at(-1)?.code, 0x06);
    });

    test("allows what everyday programs call", () => {
      for (const call of everyday[architecture]) assert.equal(judge(call), allow, `call ${call}`);
    });

    test("refuses every call of the table, whatever its arguments", () => {
      assert.ok(refusedCalls(architecture).length > 40);
      assert.ok(refusedCalls(architecture).includes(ptraceCall[architecture]));
      assert.ok(refusedCalls(architecture).includes(unshareCall[architecture]));
      for (const call of refusedCalls(architecture)) {
        assert.equal(judge(call), eperm, `call ${call}`);
        assert.equal(judge(call, [0xffff_ffff_ffff_ffffn, 0xffff_ffff_ffff_ffffn]), eperm, `call ${call}`);
      }
    });

    test("lets threads and processes start, but no namespaces", () => {
      const clone = cloneCall[architecture];
      const thread = 0x3d0f00n;
      const childSignal = 17n;
      assert.equal(judge(clone, [thread]), allow);
      assert.equal(judge(clone, [childSignal]), allow);
      for (const bit of [17n, 25n, 26n, 27n, 28n, 29n, 30n]) {
        assert.equal(judge(clone, [(1n << bit) | childSignal]), eperm, `bit ${bit}`);
        assert.equal(judge(clone, [(1n << bit) | (1n << 40n)]), eperm, `bit ${bit} with upper half`);
      }
      assert.equal(judge(435, [0n]), enosys);
    });

    test("refuses to type into a terminal, also with a dirty upper half", () => {
      const ioctl = ioctlCall[architecture];
      const getWindowSize = 0x5413n;
      assert.equal(judge(ioctl, [0n, getWindowSize]), allow);
      assert.equal(judge(ioctl, [0n, 0x5412n]), eperm);
      assert.equal(judge(ioctl, [0n, 0x541cn]), eperm);
      assert.equal(judge(ioctl, [0n, 0xffff_ffff_0000_5412n]), eperm);
    });

    test("ends the process on a call of another architecture", () => {
      const other = architecture === "x64" ? auditNumbers.arm64 : auditNumbers.x64;
      for (const audit of [other, i386]) assert.equal(judge(20, [], audit), kill);
    });
  });
}

test("the x64 filter ends the process on a call of the x32 ABI", () => {
  const audit = auditNumbers.x64;
  for (const call of [0x4000_0000, 0x4000_0027, 0x4000_0209, 0xffff_ffff]) {
    assert.equal(execute(seccompFilter("x64"), { call, audit, args: [] }), kill);
  }
});

interface Call {
  readonly call: number;
  readonly audit: number;
  readonly args: readonly bigint[];
}

/** Runs the program as the kernel would, for the five instructions it uses. */
function execute(program: Buffer, call: Call): number {
  const instructions = decode(program);
  const data = callData(call);
  let loaded = 0;
  for (let at = 0; ; at += 1) {
    const { code, skipIfTrue, skipIfFalse, value } = instructions[at]!;
    if (code === 0x06) return value;
    if (code === 0x20) loaded = data.readUInt32LE(value);
    else at += holds(code, loaded, value) ? skipIfTrue : skipIfFalse;
  }
}

function holds(code: number, loaded: number, value: number): boolean {
  if (code === 0x15) return loaded === value;
  return code === 0x35 ? loaded >= value : (loaded & value) !== 0;
}

/** `struct seccomp_data`: call number, architecture, instruction pointer, six arguments. */
function callData({ call, audit, args }: Call): Buffer {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call, 0);
  data.writeUInt32LE(audit, 4);
  for (const [index, arg] of args.entries()) data.writeBigUInt64LE(arg, 16 + index * 8);
  return data;
}

function decode(program: Buffer) {
  assert.equal(program.length % 8, 0);
  return Array.from({ length: program.length / 8 }, (_, index) => ({
    code: program.readUInt16LE(index * 8),
    skipIfTrue: program.readUInt8(index * 8 + 2),
    skipIfFalse: program.readUInt8(index * 8 + 3),
    value: program.readUInt32LE(index * 8 + 4),
  }));
}
