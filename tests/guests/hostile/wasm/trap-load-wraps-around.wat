;; Reads at an address whose offset wraps around.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (i64.load offset=4294967295 (i32.const -1)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
