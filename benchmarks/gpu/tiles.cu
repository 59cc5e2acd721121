// C[n, n] = A[n, n] @ B[n, n] with output tiles of a stated size, for counting bytes with ncu (see counters.py). Made to have exactly the
// traffic that the tile implies, not to be fast: 256 threads a block, panels 16 deep, fp32 multiply-adds whatever the stored type.
// Usage: tiles N REPEATS MANIFEST; one line of JSON per launch goes to MANIFEST, in launch order.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); exit(1); } } while (0)

constexpr int DEPTH = 16;  // panel depth: 64 byte of fp32, 32 of bf16, so that every 32-byte sector fetched is used whole
using bf16 = unsigned short;

__device__ float widen(float x) { return x; }
__device__ float widen(bf16 x) { return __uint_as_float(static_cast<unsigned>(x) << 16); }
__device__ void narrow(float *to, float x) { *to = x; }
__device__ void narrow(bf16 *to, float x) { *to = static_cast<bf16>((__float_as_uint(x) + 0x8000u) >> 16); }

// PAST_L1: load from L2 and leave nothing in L1 (ld.global.cg); otherwise L1 may serve what a neighbouring tile fetched.
template <bool PAST_L1, typename T> __device__ float fetch(const T *from) { return widen(PAST_L1 ? __ldcg(from) : *from); }

// Each thread owns (BM / 16) x (BN / 16) sums; where these pass the register file (256 x 256 fp32 fills it alone), IN_SHARED of its rows
// live in shared memory instead of spilling to L1, which would count as traffic.
template <typename T, int BM, int BN, int IN_SHARED, bool PAST_L1>
__global__ void __launch_bounds__(256) tiled(const T *a, const T *b, T *c, int n) {
    constexpr int TM = BM / 16, TN = BN / 16, IN_REGISTERS = TM - IN_SHARED;
    extern __shared__ float memory[];
    float *panel_a = memory, *panel_b = memory + DEPTH * (BM + 1), *sums = panel_b + DEPTH * BN;
    const int t = threadIdx.x, x = t % 16, y = t / 16, row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    float sum[IN_REGISTERS][TN] = {};
    for (int i = 0; i < IN_SHARED * TN; ++i) sums[i * 256 + t] = 0.0f;
    for (int k0 = 0; k0 < n; k0 += DEPTH) {
        for (int e = t; e < BM * DEPTH; e += 256) {
            int row = row0 + e / DEPTH, col = k0 + e % DEPTH;
            panel_a[(e % DEPTH) * (BM + 1) + e / DEPTH] = row < n && col < n ? fetch<PAST_L1>(a + size_t(row) * n + col) : 0.0f;
        }
        for (int e = t; e < BN * DEPTH; e += 256) {
            int row = k0 + e / BN, col = col0 + e % BN;
            panel_b[e] = row < n && col < n ? fetch<PAST_L1>(b + size_t(row) * n + col) : 0.0f;
        }
        __syncthreads();
        #pragma unroll 1
        for (int k = 0; k < DEPTH; ++k) {
            float right[TN];
            #pragma unroll
            for (int j = 0; j < TN; ++j) right[j] = panel_b[k * BN + x + 16 * j];
            #pragma unroll
            for (int i = 0; i < IN_REGISTERS; ++i) {
                float left = panel_a[k * (BM + 1) + y + 16 * i];
                #pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += left * right[j];
            }
            #pragma unroll 1
            for (int i = 0; i < IN_SHARED; ++i) {
                float left = panel_a[k * (BM + 1) + y + 16 * (IN_REGISTERS + i)];
                #pragma unroll
                for (int j = 0; j < TN; ++j) sums[(i * TN + j) * 256 + t] += left * right[j];
            }
        }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        #pragma unroll
        for (int j = 0; j < TN; ++j) {
            int row = row0 + y + 16 * i, col = col0 + x + 16 * j;
            float value = i < IN_REGISTERS ? sum[i < IN_REGISTERS ? i : 0][j] : sums[((i - IN_REGISTERS) * TN + j) * 256 + t];
            if (row < n && col < n) narrow(c + size_t(row) * n + col, value);
        }
    }
}

// One number of C a thread. ALONG_ROWS: the 32 threads of a warp take neighbouring columns (coalesced), otherwise neighbouring rows (strided).
template <typename T, bool ALONG_ROWS, bool PAST_L1> __global__ void naive(const T *a, const T *b, T *c, int n) {
    int fast = blockIdx.x * 32 + threadIdx.x % 32, slow = blockIdx.y * 8 + threadIdx.x / 32;
    int row = ALONG_ROWS ? slow : fast, col = ALONG_ROWS ? fast : slow;
    if (row >= n || col >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += fetch<PAST_L1>(a + size_t(row) * n + k) * fetch<PAST_L1>(b + size_t(k) * n + col);
    narrow(c + size_t(row) * n + col, sum);
}

template <typename T> struct Matrices {
    std::vector<T> host_a, host_b, host_c;
    T *a, *b, *c;
    int n, repeats;
    const char *precision;
    FILE *manifest;
};

static float number(float x) { return x; }
static float number(bf16 x) { unsigned bits = unsigned(x) << 16; float f; memcpy(&f, &bits, 4); return f; }
static void narrow_on_host(float *to, float x) { *to = x; }
static void narrow_on_host(bf16 *to, float x) { unsigned bits; memcpy(&bits, &x, 4); *to = bf16(bits >> 16); }

// C is NaN before a launch; 64 of its numbers are compared with the host's after it, so that traffic is never counted of a wrong product.
template <typename T> void poison(const Matrices<T> &m) { CHECK(cudaMemset(m.c, 0xff, m.host_c.size() * sizeof(T))); }

template <typename T> void finish(Matrices<T> &m, const char *kernel, int bm, int bn, bool past_l1, const char *threads) {
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(m.host_c.data(), m.c, m.host_c.size() * sizeof(T), cudaMemcpyDeviceToHost));
    for (int probe = 0; probe < 64; ++probe) {
        int row = (probe * 977) % m.n, col = (probe * 1409 + 5) % m.n;
        double sum = 0, size = 0;
        for (int k = 0; k < m.n; ++k) {
            double term = double(number(m.host_a[size_t(row) * m.n + k])) * number(m.host_b[size_t(k) * m.n + col]);
            sum += term;
            size += term * term;
        }
        double error = number(m.host_c[size_t(row) * m.n + col]) - sum;
        if (!(error * error <= 1e-4 * size)) { fprintf(stderr, "%s %dx%d: C[%d, %d] is off by %g\n", kernel, bm, bn, row, col, error); exit(1); }
    }
    fprintf(m.manifest, "{\"kernel\": \"%s\", \"precision\": \"%s\", \"n\": %d, \"tile\": [%d, %d], \"loads\": \"%s\", \"threads\": \"%s\"}\n",
            kernel, m.precision, m.n, bm, bn, past_l1 ? "past L1" : "through L1", threads);
}

template <typename T, int BM, int BN, bool PAST_L1> void run_tiled(Matrices<T> &m) {
    constexpr int IN_SHARED = BM * BN > 128 * 256 ? BM / 32 : 0;
    constexpr size_t bytes = sizeof(float) * (DEPTH * (BM + 1) + DEPTH * BN + IN_SHARED * (BN / 16) * 256);
    auto kernel = tiled<T, BM, BN, IN_SHARED, PAST_L1>;
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)));
    poison(m);
    kernel<<<dim3((m.n + BN - 1) / BN, (m.n + BM - 1) / BM), 256, bytes>>>(m.a, m.b, m.c, m.n);
    finish(m, "tiled", BM, BN, PAST_L1, "coalesced");
}

template <typename T, bool ALONG_ROWS, bool PAST_L1> void run_naive(Matrices<T> &m) {
    poison(m);
    naive<T, ALONG_ROWS, PAST_L1><<<dim3((m.n + 31) / 32, (m.n + 7) / 8), 256>>>(m.a, m.b, m.c, m.n);
    finish(m, "naive", 1, 1, PAST_L1, ALONG_ROWS ? "coalesced" : "strided");
}

template <typename T, bool PAST_L1> void run_all(Matrices<T> &m) {
    run_tiled<T, 16, 16, PAST_L1>(m);
    run_tiled<T, 32, 32, PAST_L1>(m);
    run_tiled<T, 64, 64, PAST_L1>(m);
    run_tiled<T, 128, 128, PAST_L1>(m);
    run_tiled<T, 256, 256, PAST_L1>(m);
    run_tiled<T, 16, 64, PAST_L1>(m);
    run_tiled<T, 64, 16, PAST_L1>(m);
    run_tiled<T, 32, 128, PAST_L1>(m);
    run_tiled<T, 64, 256, PAST_L1>(m);
    run_tiled<T, 256, 64, PAST_L1>(m);
    run_tiled<T, 128, 256, PAST_L1>(m);
    run_naive<T, true, PAST_L1>(m);
    run_naive<T, false, PAST_L1>(m);
}

// Random numbers in [-1, 1), never zeros.
template <typename T> void run_type(int n, int repeats, const char *precision, FILE *manifest) {
    const size_t count = size_t(n) * n, bytes = count * sizeof(T);
    Matrices<T> m{std::vector<T>(count), std::vector<T>(count), std::vector<T>(count), nullptr, nullptr, nullptr, n, repeats, precision, manifest};
    unsigned state = 12345;
    for (auto *matrix : {&m.host_a, &m.host_b})
        for (T &x : *matrix) {
            state = state * 1664525u + 1013904223u;
            narrow_on_host(&x, float(state >> 8) / 8388608.0f - 1.0f);
        }
    for (T **matrix : {&m.a, &m.b, &m.c}) {
        CHECK(cudaMalloc(matrix, bytes));
    }
    CHECK(cudaMemcpy(m.a, m.host_a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(m.b, m.host_b.data(), bytes, cudaMemcpyHostToDevice));
    for (int repeat = 0; repeat < repeats; ++repeat) {
        run_all<T, false>(m);
        run_all<T, true>(m);
    }
    CHECK(cudaFree(m.a));
    CHECK(cudaFree(m.b));
    CHECK(cudaFree(m.c));
}

int main(int argc, char **argv) {
    if (argc != 4) { fprintf(stderr, "usage: tiles N REPEATS MANIFEST\n"); return 2; }
    FILE *manifest = fopen(argv[3], "w");
    if (!manifest) { perror(argv[3]); return 1; }
    run_type<float>(atoi(argv[1]), atoi(argv[2]), "fp32", manifest);
    run_type<bf16>(atoi(argv[1]), atoi(argv[2]), "bf16", manifest);
    fclose(manifest);
    return 0;
}
