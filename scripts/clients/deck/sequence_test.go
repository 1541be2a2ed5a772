// Package deck makes the calls that decK makes, with the library that decK is made of: ping, sync, dump, diff and
// reset of some entities of every kind. It is not decK: that cannot be had from the Go module proxy.
package deck

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/kong/go-kong/kong"
)

var ctx = context.Background()

// parallel is how many calls decK has under way at once.
const parallel = 10

// a family is one kind of entity, and the calls that decK makes for it.
type family struct {
	name  string
	count int
	// wanted is the entity with this number, with its id and its references.
	wanted func(number int) any
	create func(entity any) error
	list   func() ([]any, error)
	remove func(entity any) error
	// fill gives an entity the defaults of its schema; nil: decK compares what is written only.
	fill func(entity any) error
}

func (f family) ids() map[string]any {
	ids := map[string]any{}
	for number := range f.count {
		entity := f.wanted(number)
		ids[plain(entity)["id"].(string)] = entity
	}
	return ids
}

// id is the id of a number of a family; the same in every run.
func id(family string, number int) *string {
	var sum uint64 = 14695981039346656037
	for _, char := range []byte(family) {
		sum = (sum ^ uint64(char)) * 1099511628211
	}
	text := fmt.Sprintf("%08x-%04x-4%03x-8000-%012x", uint32(sum), uint16(sum>>32), uint16(sum>>48)&0xfff, number)
	return &text
}

// plain is an entity as a map, without times and without what has no value.
func plain(entity any) map[string]any {
	text, err := json.Marshal(entity)
	if err != nil {
		panic(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		panic(err)
	}
	delete(fields, "created_at")
	delete(fields, "updated_at")
	return withoutNulls(fields)
}

func withoutNulls(fields map[string]any) map[string]any {
	for name, value := range fields {
		switch value := value.(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			withoutNulls(value)
		case []any:
			for _, item := range value {
				if record, ok := item.(map[string]any); ok {
					withoutNulls(record)
				}
			}
		}
	}
	return fields
}

// contains tells whether all that one value says is so in another.
func contains(whole, part any) bool {
	fields, isRecord := part.(map[string]any)
	if !isRecord {
		return reflect.DeepEqual(whole, part)
	}
	others, ok := whole.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range fields {
		if !contains(others[name], value) {
			return false
		}
	}
	return true
}

// each runs a function for all entities, some at once.
func each[K comparable](entities map[K]any, run func(any) error) error {
	work := make(chan any)
	errors := make(chan error, len(entities))
	var workers sync.WaitGroup
	for range parallel {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for entity := range work {
				if err := run(entity); err != nil {
					errors <- err
				}
			}
		}()
	}
	for _, entity := range entities {
		work <- entity
	}
	close(work)
	workers.Wait()
	close(errors)
	return <-errors
}

func TestSequence(t *testing.T) {
	address := os.Getenv("KONG_ADMIN_URL")
	transport := &http.Transport{MaxIdleConnsPerHost: parallel}
	client, err := kong.NewClient(&address, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	factor := 1
	if text := os.Getenv("DECK_FACTOR"); text != "" {
		if factor, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	all := families(client, factor)

	// ping
	root, err := client.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kong.ParseSemanticVersion(kong.VersionFromInfo(root)); err != nil {
		t.Fatal(err)
	}

	total := 0
	begin := time.Now()
	for _, family := range all {
		entities := family.ids()
		total += len(entities)
		if err := each(entities, family.create); err != nil {
			t.Fatalf("sync: %s: %v", family.name, err)
		}
	}
	t.Logf("sync: %d entities in %v", total, time.Since(begin).Round(time.Millisecond))

	begin = time.Now()
	for _, path := range enterprise {
		request, err := client.NewRequest("GET", path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, _ := client.Do(ctx, request, nil)
		if response == nil || response.StatusCode != http.StatusNotFound {
			t.Errorf("dump: %s is not answered with 404", path)
		}
	}
	differences := 0
	for _, family := range all {
		differences += compare(t, family)
	}
	if differences > 0 {
		t.Errorf("diff: %d differences after sync", differences)
	}
	t.Logf("dump and diff in %v", time.Since(begin).Round(time.Millisecond))

	begin = time.Now()
	for index := len(all) - 1; index >= 0; index-- {
		family := all[index]
		if err := each(family.ids(), family.remove); err != nil {
			t.Fatalf("reset: %s: %v", family.name, err)
		}
	}
	for _, family := range all {
		if left, err := family.list(); err != nil || len(left) > 0 {
			t.Errorf("reset: %d %s are left (%v)", len(left), family.name, err)
		}
	}
	t.Logf("reset in %v", time.Since(begin).Round(time.Millisecond))
}

// compare counts the entities of a family that are not there as they were written.
func compare(t *testing.T, family family) int {
	found, err := family.list()
	if err != nil {
		t.Fatalf("dump: %s: %v", family.name, err)
	}
	wanted := family.ids()
	differences := 0
	for _, entity := range found {
		is := plain(entity)
		key := is["id"].(string)
		want, ok := wanted[key]
		delete(wanted, key)
		if !ok {
			differences++
			t.Errorf("diff: %s %s is there, and was not written", family.name, key)
			continue
		}
		if family.fill != nil {
			if err := family.fill(want); err != nil {
				t.Fatalf("diff: %s: %v", family.name, err)
			}
		}
		must := plain(want)
		if !contains(is, must) || (family.fill != nil && !contains(must, is)) {
			differences++
			if differences < 4 {
				t.Errorf("diff: %s %s:\n is   %v\n must %v", family.name, key, is, must)
			}
		}
	}
	for key := range wanted {
		differences++
		t.Errorf("diff: %s %s is not there", family.name, key)
	}
	return differences
}
