//! Tests of the effects of single transactions on the tables.

use super::{SMALL, put, row, rows, tpcc};
use crate::common::{MemStore, loaded, on_store, plan, unwatched};
use fulgurite_base::Prng;
use fulgurite_bench::codec::Row;
use fulgurite_bench::tpcc::rows::*;
use fulgurite_bench::tpcc::{Customers, Line, Request, Tpcc, Who};
use fulgurite_bench::{Benchmark, Ending, Error, Extent, Outcome, Plan, Program, Session};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// TPC-C with given requests in place of drawn ones.
struct Script {
    tpcc: Rc<Tpcc>,
    requests: RefCell<VecDeque<Request>>,
}

impl Benchmark for Script {
    type Request = Request;

    fn kinds(&self) -> &[&'static str] {
        self.tpcc.kinds()
    }

    fn kind(&self, request: &Request) -> usize {
        self.tpcc.kind(request)
    }

    fn draw(&self, _: &mut Prng) -> Request {
        self.requests.borrow_mut().pop_front().expect("a request for each transaction")
    }

    async fn execute(&self, request: &Request, session: &Session) -> Result<Ending, Error> {
        self.tpcc.execute(request, session).await
    }
}

/// Executes the requests over a loaded store, all of them concurrently.
async fn script(store: &MemStore, program: &Program, requests: Vec<Request>) -> Outcome {
    let count = requests.len() as u64;
    let script = Rc::new(Script { tpcc: tpcc(program), requests: RefCell::new(requests.into()) });
    let plan = Plan { users: count as u32, stop: Extent::Ops(count), ..plan(0) };
    let outcome = fulgurite_bench::run(store, &script, &plan, || (), &unwatched()).await.unwrap();
    program.verify(store).await.unwrap();
    outcome
}

/// Loads a small store and executes the requests over it, all of them concurrently.
async fn carry_out(store: &MemStore, requests: Vec<Request>) -> Outcome {
    let program = loaded(store, SMALL).await;
    script(store, &program, requests).await
}

fn payment(number: u64, who: Who) -> Request {
    let customers = Customers { warehouse: 2, district: 3, who };
    Request::Payment { number, warehouse: 1, district: 5, customers, amount: 123_45 }
}

#[test]
fn a_payment_reaches_warehouse_district_customer_and_history() {
    on_store(async |store| {
        let outcome = carry_out(&store, vec![payment(600, Who::Number(8))]).await;
        assert_eq!(row::<Warehouse>(&store, warehouse_key(1)).await.ytd, 300_123_45);
        assert_eq!(row::<District>(&store, district_key(1, 5)).await.ytd, 30_123_45);
        let customer: Customer = row(&store, customer_key(2, 3, 8)).await;
        assert_eq!((customer.balance, customer.ytd_payment, customer.payments), (-133_45, 133_45, 2));
        // The load makes 600 payments, one for each customer of two warehouses with ten districts of 30
        // customers. So the new payment has the last key.
        let (_, last) = rows::<History>(&store).await.pop().unwrap();
        assert_eq!((last.customer, last.customer_warehouse, last.warehouse, last.amount), (8, 2, 1, 123_45));
        assert!(last.data.contains("    "));
        // The written bytes include the keys of the four rows, which have 4, 5, 9 and 8 bytes.
        let warehouse: Warehouse = row(&store, warehouse_key(1)).await;
        let district: District = row(&store, district_key(1, 5)).await;
        let rows = [warehouse.encode(), district.encode(), customer.encode(), last.encode()];
        let bytes = 4 + 5 + 9 + 8 + rows.iter().map(Vec::len).sum::<usize>();
        assert_eq!(outcome.user_bytes_written, bytes as u64);
    });
}

#[test]
fn a_payment_by_name_selects_the_middle_customer() {
    on_store(async |store| {
        let program = loaded(&store, SMALL).await;
        // Four customers get the same last name. The second one in the order of first names is the middle
        // one.
        for (number, first) in [(8, "D"), (9, "B"), (10, "C"), (11, "A")] {
            let customer: Customer = row(&store, customer_key(2, 3, number)).await;
            let (last, first) = ("SAMENAME".to_owned(), first.to_owned());
            put(&store, customer_key(2, 3, number), &Customer { last, first, ..customer }).await;
        }
        script(&store, &program, vec![payment(600, Who::Name("SAMENAME".to_owned()))]).await;
        for (number, payments) in [(8, 1), (9, 2), (10, 1), (11, 1)] {
            assert_eq!(
                row::<Customer>(&store, customer_key(2, 3, number)).await.payments,
                payments,
                "{number}"
            );
        }
    });
}

#[test]
fn a_payment_of_a_customer_with_bad_credit_is_noted_in_its_data() {
    on_store(async |store| {
        let program = loaded(&store, SMALL).await;
        let customer: Customer = row(&store, customer_key(2, 3, 8)).await;
        let credit = "BC".to_owned();
        put(&store, customer_key(2, 3, 8), &Customer { credit, data: "x".repeat(500), ..customer }).await;
        script(&store, &program, vec![payment(600, Who::Number(8))]).await;
        let data = row::<Customer>(&store, customer_key(2, 3, 8)).await.data;
        assert!(data.starts_with("8 3 2 5 1 12345 xxx") && data.len() == 500, "{data}");
    });
}

fn lines(items: &[(u32, u32)]) -> Vec<Line> {
    items.iter().map(|(item, supplier)| Line { item: *item, supplier: *supplier, quantity: 4 }).collect()
}

fn new_order(lines: Vec<Line>) -> Request {
    Request::NewOrder { warehouse: 1, district: 2, customer: 3, lines }
}

#[test]
fn a_new_order_takes_its_items_from_the_stocks() {
    on_store(async |store| {
        let program = loaded(&store, SMALL).await;
        let before: Stock = row(&store, stock_key(2, 9)).await;
        script(&store, &program, vec![new_order(lines(&[(7, 1), (9, 2), (7, 1)]))]).await;
        assert_eq!(row::<District>(&store, district_key(1, 2)).await.next_order, 32);
        let order: Order = row(&store, order_key(1, 2, 31)).await;
        assert_eq!((order.customer, order.lines, order.all_local, order.carrier), (3, 3, 0, 0));
        let line: OrderLine = row(&store, line_key(1, 2, 31, 2)).await;
        let price = row::<Item>(&store, item_key(9)).await.price;
        assert_eq!((line.item, line.supplier, line.amount), (9, 2, 4 * price));
        assert_eq!(line.info, before.districts[1]);
        let after: Stock = row(&store, stock_key(2, 9)).await;
        let left = before.quantity - 4;
        assert_eq!(after.quantity, if left >= 10 { left } else { left + 91 });
        assert_eq!((after.ytd, after.orders, after.remote), (4, 1, 1));
        // An item that occurs twice in an order is subtracted from the stock twice.
        let twice: Stock = row(&store, stock_key(1, 7)).await;
        assert_eq!((twice.ytd, twice.orders, twice.remote), (8, 2, 0));
    });
}

#[test]
fn an_order_with_an_unknown_item_leaves_no_trace() {
    on_store(async |store| {
        let outcome = carry_out(&store, vec![new_order(lines(&[(7, 1), (201, 1)]))]).await;
        assert_eq!((outcome.figures().rollbacks(), outcome.commit_latency.count()), (1, 0));
        assert_eq!(row::<District>(&store, district_key(1, 2)).await.next_order, 31);
        assert_eq!(row::<Stock>(&store, stock_key(1, 7)).await.orders, 0);
        assert_eq!(rows::<NewOrder>(&store).await.len(), 180);
    });
}

#[test]
fn concurrent_deliveries_deliver_different_orders() {
    on_store(async |store| {
        let requests = (1..=3).map(|carrier| Request::Delivery { warehouse: 1, carrier }).collect();
        carry_out(&store, requests).await;
        // Orders 22 to 30 of each district were undelivered after the load.
        for district in 1..=10 {
            let mut carriers = Vec::new();
            for number in 22..=24 {
                let order: Order = row(&store, order_key(1, district, number)).await;
                carriers.push(order.carrier);
                let line: OrderLine = row(&store, line_key(1, district, number, 1)).await;
                assert!(line.delivered > 1);
                let customer: Customer = row(&store, customer_key(1, district, order.customer)).await;
                assert!(customer.deliveries == 1 && customer.balance > -10_00);
            }
            carriers.sort_unstable();
            assert_eq!(carriers, [1, 2, 3]);
            assert_eq!(row::<Order>(&store, order_key(1, district, 25)).await.carrier, 0);
        }
        assert_eq!(rows::<NewOrder>(&store).await.len(), 150);
    });
}

#[test]
fn a_warehouse_without_waiting_orders_is_skipped() {
    on_store(async |store| {
        // Nine orders of each district are undelivered, so the last of ten deliveries finds none.
        let requests = (1..=10).map(|carrier| Request::Delivery { warehouse: 1, carrier }).collect();
        let outcome = carry_out(&store, requests).await;
        assert_eq!(outcome.transactions(), 10);
        assert_eq!(rows::<NewOrder>(&store).await.len(), 90);
    });
}
