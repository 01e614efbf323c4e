// A libpmix for one rank, as pmix.h of version 4 declares it, that does one thing wrong: PMIX_WRONG
// says which.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char nspace[256];
    uint32_t rank;
} proc_t;

typedef struct {
    uint16_t type;
    union {
        char *string;
        bool flag;
        uint32_t uint32;
        int integer;
        struct { char *name; char *value; char separator; } envar;
    } data;
} value_t;

typedef struct {
    char key[512];
    uint32_t flags;
    value_t value;
} info_t;

enum { STRING = 3, INT = 6, UINT32 = 14, GLOBAL = 3, ERROR = -1, NOT_FOUND = -46, AT_ONCE = -157 };

static char key[512], text[2048];

static bool wrong(const char *what) {
    const char *said = getenv("PMIX_WRONG");
    return said && strcmp(said, what) == 0;
}

int PMIx_Init(proc_t *proc, info_t *info, size_t count) {
    if (wrong("init") || info || count) return ERROR;
    strcpy(proc->nspace, "job");
    proc->rank = wrong("rank") ? 1 : 0;
    return 0;
}

int PMIx_Finalize(const info_t *info, size_t count) { return info || count ? ERROR : 0; }

int PMIx_Put(uint8_t scope, const char *name, value_t *value) {
    if (wrong("put") || scope != GLOBAL || value->type != STRING) return ERROR;
    strncpy(key, name, sizeof key - 1);
    strncpy(text, value->data.string, sizeof text - 1);
    return 0;
}

int PMIx_Commit(void) { return wrong("commit") ? ERROR : 0; }

int PMIx_Fence_nb(const proc_t *procs, size_t count, const info_t *info, size_t infos,
                  void (*done)(int, void *), void *data) {
    if (count != 1 || strcmp(procs->nspace, "job") || procs->rank != UINT32_MAX - 1) return ERROR;
    if (infos != 1 || strcmp(info->key, "pmix.collect") || info->value.type != 1) return ERROR;
    if (!info->value.data.flag || wrong("fence")) return ERROR;
    if (wrong("fence for ever")) return 0;
    if (getenv("PMIX_AT_ONCE")) return AT_ONCE;
    done(wrong("fence later") ? ERROR : 0, data);
    return 0;
}

int PMIx_Get(const proc_t *proc, const char *name, const info_t *info, size_t infos,
             value_t **value) {
    if (infos != 1 || strcmp(info->key, "pmix.timeout") || info->value.type != INT) return ERROR;
    if (info->value.data.integer < 1) return ERROR;
    bool is_size = strcmp(name, "pmix.job.size") == 0;
    if (wrong(is_size ? "no size" : "no text")) return NOT_FOUND;
    *value = NULL;
    if (wrong(is_size ? "null size" : "null text")) return 0;
    *value = calloc(1, sizeof **value);
    if (is_size != wrong(is_size ? "size of another type" : "text of another type")) {
        (*value)->type = UINT32;
        (*value)->data.uint32 = 1;
        return 0;
    }
    if (!is_size && (proc->rank != 0 || strcmp(name, key))) return NOT_FOUND;
    (*value)->type = STRING;
    (*value)->data.string = wrong("text is null") ? NULL : strdup(wrong("bytes") ? "\xff" : text);
    return 0;
}

const char *PMIx_Error_string(int status) {
    if (getenv("PMIX_SPEECHLESS")) return NULL;
    return status == NOT_FOUND ? "PMIX_ERR_NOT_FOUND" : "PMIX_ERROR";
}
