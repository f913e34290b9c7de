/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares Einsum with its definition in long double: the sum, over all values of all labels, of
 * the product of all terms. Equations are listed, or random: up to four terms of up to four labels,
 * diagonals, broadcast dimensions of 1, and results in any order of labels.
 *
 * Tolerance: float64 1e-12, float32 1e-4, float16 1e-2, bfloat16 4e-2, for sums of at most some
 * thousand products of magnitude 1, in the order in which GEMMs add.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

#define LETTERS 26
#define MAX_TERMS 12

typedef struct einsum_case {
    const char *equation;  /* as in the node's attribute */
    const char *canonical; /* equivalent; lower-case letters only, with an explicit result */
    clg_dtype dtype;
    int64_t sizes[LETTERS];
    uint32_t ones[MAX_TERMS]; /* for each term, a bit set of the letters with size 1 */
    uint32_t constant;        /* bit set of the terms that are constants */
} einsum_case;

typedef struct reference_term {
    int rank;
    int letters[CLG_MAX_RANK];
    int64_t dims[CLG_MAX_RANK], n;
    double *numbers;
} reference_term;

static double value_at(const reference_term *t, const int64_t *at)
{
    int64_t e = 0;
    for (int i = 0; i < t->rank; i++) e = e * t->dims[i] + at[t->letters[i]] % t->dims[i];
    return t->numbers[e];
}

/* Parses the canonical equation; returns the number of terms, of which the last is the result. */
static int parse_equation(const einsum_case *k, reference_term *terms)
{
    int n = 0;
    terms[0] = (reference_term){.n = 1};
    for (const char *c = k->canonical; *c; c++) {
        if (*c == ',' || *c == '-') {
            c += *c == '-';
            terms[++n] = (reference_term){.n = 1};
            continue;
        }
        reference_term *t = &terms[n];
        const bool result = strchr(c, '>') == NULL;
        t->letters[t->rank] = *c - 'a';
        t->dims[t->rank] = !result && (k->ones[n] >> (*c - 'a') & 1) ? 1 : k->sizes[*c - 'a'];
        t->n *= t->dims[t->rank++];
    }
    return n + 1;
}

static double tolerance(clg_dtype dtype)
{
    return dtype == CLG_FLOAT64    ? 1e-12
           : dtype == CLG_FLOAT32  ? 1e-4
           : dtype == CLG_FLOAT16  ? 1e-2
           : dtype == CLG_BFLOAT16 ? 4e-2
                                   : 0;
}

static bool is_float(clg_dtype dtype) { return tolerance(dtype) > 0; }

/* Computes the sum over all values of the labels. */
static void sum_all(const reference_term *terms, int n, const int64_t *sizes, uint32_t used)
{
    int64_t at[LETTERS] = {0};
    for (;;) {
        long double product = 1;
        for (int i = 0; i < n - 1; i++) product *= (long double)value_at(&terms[i], at);
        int64_t e = 0;
        for (int i = 0; i < terms[n - 1].rank; i++)
            e = e * terms[n - 1].dims[i] + at[terms[n - 1].letters[i]];
        terms[n - 1].numbers[e] += (double)product;
        int l = 0;
        while (l < LETTERS && (!(used >> l & 1) || ++at[l] == sizes[l])) at[l++] = 0;
        if (l == LETTERS) return;
    }
}

static void check_einsum(const einsum_case *k)
{
    run_node r;
    reference_term terms[MAX_TERMS + 1];
    const int n = parse_equation(k, terms);
    uint32_t used = 0;
    int64_t work = 1;
    for (int i = 0; i < n; i++) {
        terms[i].numbers = i < n - 1 ? run_node_random(terms[i].n) : run_node_zeros(terms[i].n);
        for (int64_t e = 0; e < terms[i].n && i < n - 1; e++)
            terms[i].numbers[e] = is_float(k->dtype) ? rint(terms[i].numbers[e] * 16) / 16
                                                     : floor(fabs(terms[i].numbers[e]) * 5);
        for (int d = 0; d < terms[i].rank; d++) used |= 1u << terms[i].letters[d];
    }
    for (int l = 0; l < LETTERS; l++) work *= used >> l & 1 ? k->sizes[l] : 1;
    if (work > 0) sum_all(terms, n, k->sizes, used);
    run_node_start(&r, NULL, "Einsum", 12);
    run_node_string(&r, "equation", k->equation ? k->equation : k->canonical);
    for (int i = 0; i < n - 1; i++)
        (k->constant >> i & 1 ? run_node_constant : run_node_input)(
            &r, k->dtype, terms[i].rank, terms[i].dims, terms[i].numbers);
    run_node_expect(&r, k->dtype, terms[n - 1].rank, terms[n - 1].dims, terms[n - 1].numbers);
    r.heavy = work > 3000;
    run_node_check(&r, tolerance(k->dtype));
}

#define SIZES(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define F32(text, ...)                                                                             \
    (einsum_case) { .canonical = text, .dtype = CLG_FLOAT32, .sizes = SIZES(__VA_ARGS__) }

static void check_all(const einsum_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) check_einsum(&cases[i]);
}
#define CHECK_ALL(cases) check_all(cases, sizeof(cases) / sizeof *(cases))

TEST(einsum__one_term)
{
    const einsum_case cases[] = {
        F32("ab->ba", 5, 37),  F32("abc->cab", 3, 5, 17),
        F32("ab->", 7, 19),    F32("ab->a", 7, 33),
        F32("ab->b", 33, 7),   F32("abc->ca", 3, 5, 17),
        F32("aa->a", 19),      F32("aa->", 19),
        F32("abba->ab", 3, 5), F32("aab->ba", 5, 3),
        F32("->", 1),          F32("abcdefgh->hgfedcba", 2, 1, 3, 2, 1, 2, 2, 3),
    };
    CHECK_ALL(cases);
}

TEST(einsum__matmuls)
{
    const einsum_case cases[] = {
        F32("ab,bc->ac", 33, 65, 17),
        F32("ab,bc->ca", 33, 65, 17),
        F32("ba,cb->ac", 17, 40, 33),
        F32("abc,acd->abd", 3, 17, 33, 5),
        F32("abcd,abed->abce", 2, 3, 17, 19, 33),      /* attention's scores */
        F32("abcd,aedb->aceb", 2, 3, 7, 19, 5),        /* heads inside */
        F32("abc,cde->abde", 3, 5, 33, 4, 8),          /* rows and columns of two labels */
        F32("abc,dcb->da", 7, 5, 9, 11),               /* sums of two labels, in other orders */
        F32("abcde,ebfga->dcfg", 2, 3, 5, 4, 3, 2, 6), /* everything together */
        F32("ab,b->a", 70, 33),
        F32("b,ba->a", 70, 33),
        F32("acb,b->ca", 4, 33, 5),
        F32("abcd,bcde->abcde", 2, 3, 4, 5, 6), /* nothing to sum over */
        F32("abxcy,bxydc->bdxa", 2, 3, 4, 5),
    };
    einsum_case last = cases[sizeof cases / sizeof *cases - 1];
    last.sizes['x' - 'a'] = 2;
    last.sizes['y' - 'a'] = 3;
    check_all(cases, sizeof cases / sizeof *cases - 1);
    check_einsum(&last);
    for (uint32_t i = 0; i < 5; i++) {
        einsum_case k = cases[i];
        k.constant = i % 3 + 1; /* one is a weight, or the other, or both */
        check_einsum(&k);
    }
}

TEST(einsum__multiplications)
{
    const einsum_case cases[] = {
        F32("a,b->ab", 17, 33),     F32("a,b->ba", 17, 33),     F32("ab,ab->ab", 5, 33),
        F32("ab,ab->ba", 5, 33),    F32("ab,ab->", 5, 33),      F32("ab,ab->a", 5, 65),
        F32("ab,ab->b", 65, 5),     F32("a,a->", 1031),         F32(",ab->ba", 3, 4),
        F32("ab,cd->", 3, 4, 5, 6), F32("aab,bc->ac", 5, 7, 3), F32("ab,b->ab", 3, 40),
    };
    CHECK_ALL(cases);
}

TEST(einsum__several_terms)
{
    const einsum_case cases[] = {
        F32("ab,bc,cd->ad", 5, 33, 17, 7),
        F32("ab,cd,bc->da", 5, 33, 17, 7),
        F32("a,ab,b->", 33, 17),
        F32("abc,ad,be,cf->def", 7, 6, 5, 4, 3, 2),
        F32("a,b,c,d->dbac", 3, 4, 5, 6),
        F32("ab,ab,ab->ba", 5, 9),
        F32(",->", 1),
        F32(",a,->a", 7),
    };
    CHECK_ALL(cases);
    /* The largest number of terms that run_node supports: chained GEMMs, and labels of a single
     * term. */
    check_einsum(
        &F32("ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl,lm->ma", 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4));
    check_einsum(
        &F32("ab,ac,ad,ae,af,ag,ah,ai,aj,ak,al,am->a", 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2));
}

/* Checks a chain of as many matrices as run_node supports, large enough for panels and tiles. */
static void long_chain(unsigned constants)
{
    enum { SIDE = 35, N = SIDE * SIDE };
    run_node r;
    double *product = run_node_zeros(N);
    for (int i = 0; i < SIDE; i++) product[i * SIDE + i] = 1;
    run_node_start(&r, NULL, "Einsum", 12);
    run_node_string(&r, "equation", "ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl,lm->am");
    for (int t = 0; t < MAX_TERMS; t++) {
        double *x = run_node_random(N), *next = run_node_zeros(N);
        for (int i = 0; i < N; i++) x[i] = rint(x[i] * 16) / 64;
        for (int i = 0; i < N; i++) {
            long double sum = 0;
            for (int k = 0; k < SIDE; k++)
                sum +=
                    (long double)product[i / SIDE * SIDE + k] * (long double)x[k * SIDE + i % SIDE];
            next[i] = (double)sum;
        }
        (constants >> t & 1 ? run_node_constant : run_node_input)(&r, CLG_FLOAT32, 2,
                                                                  (int64_t[]){SIDE, SIDE}, x);
        product = next;
    }
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){SIDE, SIDE}, product);
    r.heavy = true;
    run_node_check(&r, tolerance(CLG_FLOAT32));
}

TEST(einsum__long_chain)
{
    long_chain(0xaaa);
    long_chain(0xffe); /* more weights than a node may have packed */
}

TEST(einsum__ellipsis_and_usual_results)
{
    einsum_case cases[] = {
        {"...ab,...bc->...ac", "xyab,xybc->xyac", CLG_FLOAT32, SIZES(5, 7, 3), {0}, 0},
        {"...ab, ...bc", "xyab,ybc->xyac", CLG_FLOAT32, SIZES(5, 7, 3), {0}, 0},
        {"...ab,...bc->a...c", "xyab,xybc->axyc", CLG_FLOAT32, SIZES(5, 7, 3), {1u << 23}, 0},
        {"a...b->...", "axyb->xy", CLG_FLOAT32, SIZES(5, 7), {0}, 0},
        {"...", "xy->xy", CLG_FLOAT32, SIZES(1), {0}, 0},
        {"a...->...a", "a->a", CLG_FLOAT32, SIZES(7), {0}, 0},
        {" b a ", "ba->ab", CLG_FLOAT32, SIZES(5, 7), {0}, 0},
        {"bB, aB", "ba,ca->cb", CLG_FLOAT32, SIZES(7, 5, 3), {0}, 0},
        {"aa", "aa->", CLG_FLOAT32, SIZES(5), {0}, 0},
        {"ab,bc", "ab,bc->ac", CLG_FLOAT32, SIZES(5, 7, 3), {0}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cases[i].sizes['x' - 'a'] = 4;
        cases[i].sizes['y' - 'a'] = 2;
    }
    CHECK_ALL(cases);
}

TEST(einsum__dtypes)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT16, CLG_BFLOAT16, CLG_FLOAT64, CLG_INT8,
                                       CLG_UINT8,   CLG_INT16,    CLG_UINT16,  CLG_INT32,
                                       CLG_UINT32,  CLG_INT64,    CLG_UINT64};
    static const char *const equations[] = {"abc,acd->dba", "ab->b", "aa->a", "ab,ab->a",
                                            "a,b->ba"};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (size_t q = 0; q < sizeof equations / sizeof *equations; q++)
            check_einsum(&(einsum_case){.canonical = equations[q],
                                        .dtype = dtypes[i],
                                        .sizes = SIZES(2, q == 3 ? 2 : 3, 3, 4)});
}

TEST(einsum__nothing)
{
    const einsum_case cases[] = {
        F32("ab,bc->ac", 3, 0, 4), F32("ab,bc->ac", 0, 3, 4), F32("ab->", 0, 4),
        F32("ab,bc->", 0, 3, 4),   F32("a,b->ab", 0, 3),
    };
    CHECK_ALL(cases);
}

/* A GEMM large enough for every tile, and an equation with reductions only. */
TEST(einsum__large)
{
    const einsum_case cases[] = {F32("abc,acd->bad", 2, 130, 67, 150), F32("ab,ab->", 131, 257)};
    CHECK_ALL(cases);
}

static int pick(int n) { return (int)((*run_node_random(1) + 1) / 2 * n) % n; }

TEST(einsum__random)
{
    for (int round = 0; round < 20; round++) {
        char text[64];
        int at = 0, letters = 2 + pick(4);
        einsum_case k = {.canonical = text, .dtype = CLG_FLOAT32};
        const int n = 1 + pick(4);
        uint32_t used = 0;
        for (int l = 0; l < letters; l++) k.sizes[l] = 1 + pick(5);
        for (int t = 0; t < n; t++) {
            const int rank = pick(5);
            if (t > 0) text[at++] = ',';
            for (int i = 0; i < rank; i++) {
                const int l = pick(letters);
                text[at++] = (char)('a' + l);
                used |= 1u << l;
            }
            if (pick(3) == 0) k.ones[t] = 1u << pick(letters);
        }
        text[at++] = '-';
        text[at++] = '>';
        for (int first = pick(letters), i = 0; i < letters; i++) {
            const int l = (first + i * (letters == 5 ? 2 : 1)) % letters;
            if ((used >> l & 1) && pick(2)) text[at++] = (char)('a' + l);
        }
        text[at] = '\0';
        /* A label whose size is 1 in all terms. */
        for (int l = 0; l < letters; l++) {
            bool full = false;
            int term = 0;
            for (const char *c = text; *c != '-'; c++) {
                term += *c == ',';
                full |= *c == 'a' + l && !(k.ones[term] >> l & 1);
            }
            if (!full) k.sizes[l] = 1;
        }
        check_einsum(&k);
    }
}

TEST(einsum__refusals)
{
    static const struct {
        const char *equation, *words;
        clg_status status;
    } cases[] = {{"ab,bc->ad", "new", CLG_ERROR_INVALID_MODEL},
                 {"ab,bc->aa", "twice", CLG_ERROR_INVALID_MODEL},
                 {"ab->a", "fewer", CLG_ERROR_INVALID_MODEL},
                 {"ab,bc,c->a", "more terms", CLG_ERROR_INVALID_MODEL},
                 {"a1,bc->a", "not a letter", CLG_ERROR_INVALID_MODEL},
                 {"a..b,bc->a", "ellipsis", CLG_ERROR_INVALID_MODEL},
                 {"ab,bc-a", "arrow", CLG_ERROR_INVALID_MODEL},
                 {"ab,bc->a->c", "after its result", CLG_ERROR_INVALID_MODEL},
                 {"...b,b...->b", "ellipsis", CLG_ERROR_INVALID_MODEL},
                 {"abc,bc->a", "letters", CLG_ERROR_SHAPE},
                 {"ab,ac->a", "one label", CLG_ERROR_SHAPE}};
    const double x[6] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_node r;
        run_node_start(&r, NULL, "Einsum", 12);
        run_node_string(&r, "equation", cases[i].equation);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){3, 2}, x);
        run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){2}, x);
        run_node_refused(&r, cases[i].status, cases[i].words);
    }
}

TEST_GROUP(run_node_open, run_node_close)
