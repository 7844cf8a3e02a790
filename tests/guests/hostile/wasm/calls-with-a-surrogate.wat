;; Asks with a pointer that encodes half of a pair.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 600) "/\ed\a0\80")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $json (local.get $observed) (i32.const 600) (i32.const 4) (i32.const 700))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
