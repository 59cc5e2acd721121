"""Loops of one instruction that works on registers or shared memory alone: how fast a GPU issues
it, whatever memory and libraries do. CUDA C++ as text, for `compiling`.

The names and shapes of the instructions are those of NVIDIA's PTX ISA, chapters "Floating-Point
Instructions", "Integer Arithmetic Instructions: dp4a", "Warp Level Matrix Multiply-Accumulate
Instructions" and "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions". A
multiply-add is 2 FLOP. Operands do not change while a loop runs, so that it draws less power than a
matrix product does.
"""

from dataclasses import dataclass
from typing import ClassVar

from roofline_lib.measuring.compiling import Kernel
from roofline_lib.measuring.record import ChainsShape

# a is a literal: with all three operands in registers the register file, not the latency, would set
# the rate of one to three chains
CHAIN_SOURCE = r"""
extern "C" __global__ void chains(float *out, float b, int steps) {
    constexpr int UNROLLED = WIDTH < 128 ? 128 / WIDTH : 1;
    float x[WIDTH], sum = 0.0f;
    #pragma unroll
    for (int w = 0; w < WIDTH; ++w) x[w] = 0.001f * (threadIdx.x + w);
    #pragma unroll UNROLLED
    for (int s = 0; s < steps; ++s) {
        #pragma unroll
        /* each needs the one before it in its own chain */
        for (int w = 0; w < WIDTH; ++w) x[w] = fmaf(x[w], 0.999f, b);
    }
    #pragma unroll
    for (int w = 0; w < WIDTH; ++w) sum += x[w];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}"""


def chain_kernel(shape: ChainsShape) -> Kernel:
    """Multiply-adds along each chain of every thread, in fp32."""
    source = f"#define WIDTH {shape.width}\n{CHAIN_SOURCE}"
    return Kernel("chains", source, shape.blocks, shape.threads, shape.steps)


@dataclass(frozen=True)
class Register:
    """A register as C declares it, and its letter in inline assembly."""

    kind: str
    letter: str


FLOAT, DOUBLE = Register("float", "f"), Register("double", "d")
WHOLE, PACKED = Register("int", "r"), Register("unsigned", "r")


@dataclass(frozen=True)
class Pattern:
    """`bits & keep | put` makes any 32 bits into numbers of 0.5 to 1 of either sign: none that is
    not finite, and none so large that sums overflow."""

    keep: int = 0xFFFFFFFF
    put: int = 0


BF16, FP16 = Pattern(0x807F807F, 0x3F003F00), Pattern(0x83FF83FF, 0x38003800)
TF32, E4M3 = Pattern(0x807FFFFF, 0x3F000000), Pattern(0x87878787, 0x30303030)
INT8 = Pattern()


@dataclass(frozen=True)
class Loop:
    """A loop of `instruction`, which does `flops` FLOP each time that `issuers` threads issue it
    together. `unit` is what does it, `least` the lowest compute capability that has it, `most` the
    highest."""

    issuers: ClassVar[int]
    precision: str
    unit: str
    instruction: str
    flops: float
    least: tuple[int, int]
    most: tuple[int, int] = (99, 0)

    @property
    def label(self) -> str:
        """What does it and by which instruction, as a point's label says."""
        return f"{self.unit}: {self.instruction}"

    def runs_on(self, capability: tuple[int, int]) -> bool:
        return self.least <= capability <= self.most

    def work(self, shape: ChainsShape) -> float:
        """The FLOP of a whole start."""
        issued = shape.blocks * (shape.threads // self.issuers) * shape.width * shape.steps
        return self.flops * issued


@dataclass(frozen=True)
class LaneLoop(Loop):
    """On a thread's own lane. `a` and `b` are the operands beside the sum, as C."""

    issuers = 1
    register: Register = FLOAT
    a: str = "0.999f"
    b: str = "b"

    def shape(self, units: int) -> ChainsShape:
        """Enough to fill so many multiprocessors."""
        return ChainsShape(units, 1024, 4, 1 << 16)

    def kernel(self, shape: ChainsShape) -> Kernel:
        """Independent chains in each thread, one instruction after the other along each."""
        order = "%1, %2, %0" if self.instruction.startswith("dp4a") else "%0, %1, %2"
        source = _LANES
        for mark, text in {
            "WIDTH": str(shape.width),
            "KIND": self.register.kind,
            "LETTER": self.register.letter,
            "A_VALUE": self.a,
            "B_VALUE": self.b,
            "INSTRUCTION": f"{self.instruction} %0, {order};",
        }.items():
            source = source.replace(f"@{mark}@", text)
        return Kernel("loop", source, shape.blocks, shape.threads, shape.steps)


_LANES = r"""
extern "C" __global__ void loop(float *out, float b, int steps) {
    @KIND@ x[@WIDTH@], a = @A_VALUE@, other = @B_VALUE@;
    #pragma unroll
    for (int w = 0; w < @WIDTH@; ++w) x[w] = (@KIND@)(threadIdx.x + w);
    #pragma unroll 16
    for (int s = 0; s < steps; ++s) {
        #pragma unroll
        for (int w = 0; w < @WIDTH@; ++w)
            asm volatile("@INSTRUCTION@" : "+@LETTER@"(x[w]) : "@LETTER@"(a), "@LETTER@"(other));
    }
    float sum = 0.0f;
    #pragma unroll
    for (int w = 0; w < @WIDTH@; ++w) sum += (float)x[w];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}"""


@dataclass(frozen=True)
class WarpLoop(Loop):
    """mma.sync on a warp's tensor core. A thread holds so many `registers` of A, B and C; those of
    C are `sums`. `pattern` is that of A and B, None where they are doubles."""

    issuers = 32
    registers: tuple[int, int, int] = (4, 2, 4)
    sums: Register = FLOAT
    pattern: Pattern | None = INT8

    def shape(self, units: int) -> ChainsShape:
        """Enough to fill so many multiprocessors."""
        return ChainsShape(2 * units, 256, 4, 1 << 14)

    def kernel(self, shape: ChainsShape) -> Kernel:
        """Independent sums in each warp, one instruction after the other for each."""
        a, b, c = self.registers
        names = [[f"%{first + i}" for i in range(n)] for first, n in ((0, c), (c, a), (c + a, b))]
        sums, left, right = ("{" + ", ".join(row) + "}" for row in names)
        operand, bits = DOUBLE, "0.5 + 0.5 * (h & 255) / 256"
        if self.pattern:
            operand, bits = PACKED, f"(h & {self.pattern.keep:#x}u) | {self.pattern.put:#x}u"
        source = _WARPS
        for mark, text in {
            "WIDTH": str(shape.width),
            "SUMS": str(c),
            "LEFT": str(a),
            "RIGHT": str(b),
            "KIND": self.sums.kind,
            "OPERAND": operand.kind,
            "BITS": bits,
            "INSTRUCTION": f"{self.instruction} {sums}, {left}, {right}, {sums};",
            "OUTPUTS": ", ".join(f'"+{self.sums.letter}"(c[w][{i}])' for i in range(c)),
            "INPUTS": ", ".join(
                [f'"{operand.letter}"(a[{i}])' for i in range(a)]
                + [f'"{operand.letter}"(b_[{i}])' for i in range(b)]
            ),
        }.items():
            source = source.replace(f"@{mark}@", text)
        return Kernel("loop", source, shape.blocks, shape.threads, shape.steps)


_WARPS = r"""
extern "C" __global__ void loop(float *out, float b, int steps) {
    @OPERAND@ a[@LEFT@], b_[@RIGHT@];
    @KIND@ c[@WIDTH@][@SUMS@];
    for (int i = 0; i < @LEFT@ + @RIGHT@; ++i) {
        unsigned h = (threadIdx.x * 37u + i * 101u + 1u) * 2654435761u;
        h ^= h >> 15;
        (i < @LEFT@ ? a[i] : b_[i - @LEFT@]) = @BITS@;
    }
    #pragma unroll
    for (int w = 0; w < @WIDTH@; ++w)
        for (int i = 0; i < @SUMS@; ++i) c[w][i] = 0;
    #pragma unroll 8
    for (int s = 0; s < steps; ++s) {
        #pragma unroll
        for (int w = 0; w < @WIDTH@; ++w)
            asm volatile("@INSTRUCTION@" : @OUTPUTS@ : @INPUTS@);
    }
    float sum = b;
    #pragma unroll
    for (int w = 0; w < @WIDTH@; ++w)
        for (int i = 0; i < @SUMS@; ++i) sum += (float)c[w][i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}"""


@dataclass(frozen=True)
class WarpgroupLoop(Loop):
    """wgmma.mma_async of Hopper: four warps multiply [64, k] by [k, 256] out of shared memory.
    `tail` are the instruction's last operands."""

    issuers = 128
    sums: Register = FLOAT
    pattern: Pattern = INT8
    tail: str = ""

    def shape(self, units: int) -> ChainsShape:
        """Enough to fill so many multiprocessors, with two warpgroups each."""
        return ChainsShape(2 * units, self.issuers, 16, 1 << 9)

    def kernel(self, shape: ChainsShape) -> Kernel:
        """In each step so many instructions one after the other, on the same sums."""
        sums = ", ".join(f"%{i}" for i in range(128))
        source = _WARPGROUPS
        for mark, text in {
            "WIDTH": str(shape.width),
            "KIND": self.sums.kind,
            "KEEP": f"{self.pattern.keep:#x}u",
            "PUT": f"{self.pattern.put:#x}u",
            "INSTRUCTION": f"{self.instruction} {{{sums}}}, %128, %129, p{self.tail};",
            "OUTPUTS": ", ".join(f'"+{self.sums.letter}"(c[{i}])' for i in range(128)),
        }.items():
            source = source.replace(f"@{mark}@", text)
        return Kernel("loop", source, shape.blocks, shape.threads, shape.steps)


# A is 64 rows of 128 byte, B 256 of them, both with the 128-byte swizzle: a descriptor holds the
# address over 16, the byte from 8 rows to the next 8 over 16 (64), and the swizzle (1 in its
# highest two bits). A step along k is 32 byte.
_WARPGROUPS = r"""
__device__ unsigned long long described(const void *place) {
    unsigned address = (unsigned)__cvta_generic_to_shared(place);
    return (unsigned long long)((address & 0x3FFFF) >> 4) | (1ull << 16) | (64ull << 32)
        | (1ull << 62);
}
extern "C" __global__ void __launch_bounds__(128) loop(float *out, float b, int steps) {
    __shared__ __align__(1024) unsigned data[(64 + 256) * 32];
    for (int i = threadIdx.x; i < (64 + 256) * 32; i += blockDim.x) {
        unsigned h = (i + 1u) * 2654435761u;
        h ^= h >> 15;
        data[i] = (h & @KEEP@) | @PUT@;
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    unsigned long long a = described(data), bs = described(data + 64 * 32);
    @KIND@ c[128];
    #pragma unroll
    for (int i = 0; i < 128; ++i) c[i] = 0;
    for (int s = 0; s < steps; ++s) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        #pragma unroll
        for (int w = 0; w < @WIDTH@; ++w)
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n@INSTRUCTION@\n}\n"
                : @OUTPUTS@ : "l"(a + 2 * (w % 4)), "l"(bs + 2 * (w % 4)));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    float sum = b;
    #pragma unroll
    for (int i = 0; i < 128; ++i) sum += (float)c[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}"""

_LANES_DO, _TENSOR_CORES_DO = "lanes", "tensor cores"
_HOPPER = (9, 0)
_SIGNS, _SIGNS_AND_TURNS = ", 1, 1", ", 1, 1, 0, 0"


def _lanes(precision, instruction, flops, least, register, a, b):
    return LaneLoop(precision, _LANES_DO, instruction, flops, least, register=register, a=a, b=b)


def _warp(precision, m, n, k, types, least, pattern, sums=FLOAT, registers=(4, 2, 4)):
    return WarpLoop(
        precision,
        _TENSOR_CORES_DO,
        f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{types}",
        2.0 * m * n * k,
        least,
        registers=registers,
        sums=sums,
        pattern=pattern,
    )


def _warpgroup(precision, k, types, pattern, tail, sums=FLOAT):
    return WarpgroupLoop(
        precision,
        _TENSOR_CORES_DO,
        f"wgmma.mma_async.sync.aligned.m64n256k{k}.{types}",
        2.0 * 64 * 256 * k,
        least=_HOPPER,
        most=_HOPPER,
        sums=sums,
        pattern=pattern,
        tail=tail,
    )


_FP64 = "f64.f64.f64.f64"
LOOPS: tuple[LaneLoop | WarpLoop | WarpgroupLoop, ...] = (
    _lanes("fp64", "fma.rn.f64", 2, (6, 0), DOUBLE, "0.999", "(double)b"),
    _lanes("fp32", "fma.rn.f32", 2, (5, 0), FLOAT, "0.999f", "b"),
    _lanes("fp16", "fma.rn.f16x2", 4, (5, 3), PACKED, "0x3BFE3BFEu", "0x38003800u"),
    _lanes("bf16", "fma.rn.bf16x2", 4, (8, 0), PACKED, "0x3F7F3F7Fu", "0x3F003F00u"),
    _lanes("int8", "dp4a.s32.s32", 8, (6, 1), WHOLE, "0x01020304", "(int)b + 5"),
    _warp("fp64", 8, 8, 4, _FP64, (8, 0), None, DOUBLE, (1, 1, 2)),
    _warp("fp64", 16, 8, 16, _FP64, (9, 0), None, DOUBLE, (8, 4, 4)),
    _warp("tf32", 16, 8, 8, "f32.tf32.tf32.f32", (8, 0), TF32),
    _warp("bf16", 16, 8, 16, "f32.bf16.bf16.f32", (8, 0), BF16),
    _warp("fp16", 16, 8, 16, "f32.f16.f16.f32", (8, 0), FP16),
    _warp("fp8", 16, 8, 32, "f32.e4m3.e4m3.f32", (8, 9), E4M3),
    _warp("int8", 16, 8, 32, "s32.s8.s8.s32", (8, 0), INT8, WHOLE),
    _warpgroup("tf32", 8, "f32.tf32.tf32", TF32, _SIGNS),
    _warpgroup("bf16", 16, "f32.bf16.bf16", BF16, _SIGNS_AND_TURNS),
    _warpgroup("fp16", 16, "f32.f16.f16", FP16, _SIGNS_AND_TURNS),
    _warpgroup("fp8", 32, "f32.e4m3.e4m3", E4M3, _SIGNS),
    _warpgroup("int8", 32, "s32.s8.s8", INT8, "", WHOLE),
)


def loops_for(capability: tuple[int, int]) -> list[LaneLoop | WarpLoop | WarpgroupLoop]:
    """The loops of the instructions that a GPU of this compute capability has."""
    return [loop for loop in LOOPS if loop.runs_on(capability)]
