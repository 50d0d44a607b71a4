/** Processor names as `process.arch` gives them, for which there is a table below. */
export type Architecture = "x64" | "arm64";

/** Bit that marks a call of the x32 ABI, which numbers calls differently and so would walk past the table. */
const x32Bit = 0x4000_0000;

/**
 * `AUDIT_ARCH_*` of linux/audit.h, the numbers of the calls that need a look at their arguments, and whether the x32 ABI
 * exists. Columns of `refused`: `x64` from asm/unistd_64.h, `arm64` from asm-generic/unistd.h (Linux 6.1;
 * `open_tree_attr` is of 6.15).
 */
const machines = {
  x64: { audit: 0xc000_003e, clone: 56, ioctl: 16, x32: true },
  arm64: { audit: 0xc000_00b7, clone: 220, ioctl: 29, x32: false },
} as const;

/** Same number on every architecture (calls newer than Linux 5.1). */
const clone3 = 435;

/** Calls that end in EPERM: `[x64, arm64]`, `null` where the architecture does not have the call. */
const refused: Readonly<Record<string, readonly [number, number | null]>> = {
  // Other processes' memory and descriptors.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  pidfd_getfd: [438, 438],
  kcmp: [312, 272],
  // What is mounted where; handles reach files outside the mounts one can see.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  open_tree_attr: [467, 467],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  swapon: [167, 224],
  swapoff: [168, 225],
  // Namespaces, which hand out capabilities over more of the kernel.
  setns: [308, 268],
  unshare: [272, 97],
  // Keys are not kept apart by namespaces.
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // Large parts of the kernel that escapes have come from.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  // The kernel itself.
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  reboot: [169, 142],
  acct: [163, 89],
  syslog: [103, 116],
  iopl: [172, null],
  ioperm: [173, null],
  modify_ldt: [154, null],
};

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET of linux/sched.h. */
const namespaceFlags = 0x7e02_0000;

/** ioctl requests that type into a terminal as if the person at it had: TIOCSTI, TIOCLINUX. */
const typingRequests = [0x5412, 0x541c] as const;

/** Offsets in `struct seccomp_data`; an argument's lower half comes first on both (little-endian) architectures. */
const offset = { call: 0, audit: 4, firstArgument: 16, secondArgument: 24 } as const;

/** Instructions of linux/bpf_common.h: load a word, compare, return. */
const code = { load: 0x20, equal: 0x15, atLeast: 0x35, anyBit: 0x45, end: 0x06 } as const;

/** Verdicts of linux/seccomp.h; the errno is in the lower half. */
const verdict = { allow: 0x7fff_0000, kill: 0x8000_0000, eperm: 0x0005_0001, enosys: 0x0005_0026 } as const;

/** One `struct sock_filter`: what to do, how many instructions to skip when true and when false, and the value. */
type Instruction = readonly [code: number, skipIfTrue: number, skipIfFalse: number, value: number];

/**
 * The filter that bubblewrap puts on everything in the sandbox, as the bytes its `--seccomp` reads: an array of
 * `struct sock_filter`. Everything is allowed but the calls above (EPERM), new namespaces through `clone` (EPERM), `clone3`
 * (ENOSYS: its flags are behind a pointer that no filter can read, and C libraries then fall back to `clone`) and typing
 * into a terminal. A call of another architecture ends the process, because its numbers mean something else.
 */
export function seccompFilter(architecture: Architecture): Buffer {
  return Buffer.concat(program(architecture).map(encode));
}

/** Whether there is a table for this processor (`process.arch`). */
export function isKnownArchitecture(name: string): name is Architecture {
  return Object.hasOwn(machines, name);
}

/** Numbers of the calls that end in EPERM whatever their arguments. */
export function refusedCalls(architecture: Architecture): number[] {
  const column = architecture === "x64" ? 0 : 1;
  return Object.values(refused).flatMap((numbers) => numbers[column] ?? []);
}

function program(architecture: Architecture): Instruction[] {
  const machine = machines[architecture];
  return [
    [code.load, 0, 0, offset.audit],
    [code.equal, 1, 0, machine.audit],
    [code.end, 0, 0, verdict.kill],
    [code.load, 0, 0, offset.call],
    ...(machine.x32 ? when(code.atLeast, x32Bit, verdict.kill) : []),
    ...refusedCalls(architecture).flatMap((call) => when(code.equal, call, verdict.eperm)),
    ...when(code.equal, clone3, verdict.enosys),
    ...whenArgument(machine.clone, offset.firstArgument, when(code.anyBit, namespaceFlags, verdict.eperm)),
    ...whenArgument(
      machine.ioctl,
      offset.secondArgument,
      typingRequests.flatMap((request) => when(code.equal, request, verdict.eperm)),
    ),
    [code.end, 0, 0, verdict.allow],
  ];
}

function when(comparison: number, value: number, then: number): Instruction[] {
  return [
    [comparison, 0, 1, value],
    [code.end, 0, 0, then],
  ];
}

/** Judges one call by an argument. It replaces the loaded call number, so it must end in a verdict itself. */
function whenArgument(call: number, argument: number, tests: Instruction[]): Instruction[] {
  const body: Instruction[] = [[code.load, 0, 0, argument], ...tests, [code.end, 0, 0, verdict.allow]];
  return [[code.equal, 0, body.length, call], ...body];
}

function encode([operation, skipIfTrue, skipIfFalse, value]: Instruction): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(operation, 0);
  bytes.writeUInt8(skipIfTrue, 2);
  bytes.writeUInt8(skipIfFalse, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}
