;; Grows its memory each time the host asks for room.
;; kind: health
;; expect: memory
(component
  {{imports}}
  (core module $heap
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) 
      (local $page i32)
      (local.set $page (memory.grow (i32.const 16)))
      (if (i32.lt_s (local.get $page) (i32.const 0)) (then unreachable))
      (i32.shl (local.get $page) (i32.const 16))))
  (core instance $heap (instantiate $heap))
  {{host}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop
        (call $json (local.get $observed) (i32.const 600) (i32.const 0) (i32.const 700))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
